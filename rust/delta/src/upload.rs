//! What a Parquet writer writes into: a file of the object store that is sent in parts
//! while it is written.

use std::io::{Error, Write};

use delta_kernel::object_store::buffered::BufWriter;
use delta_kernel::object_store::path::Path;
use tokio::io::AsyncWriteExt as _;

use crate::failure::Outcome;
use crate::table::{runtime, Place};

/// Of one upload request; two may be under way.
const PART_SIZE_BYTES: usize = 8 << 20;

/// At most three parts are in memory. Must not be used inside the runtime: it waits.
pub struct Upload {
    parts: BufWriter,
    /// The part being filled, shorter than PART_SIZE_BYTES.
    part: Vec<u8>,
}

impl Upload {
    pub fn new(place: &Place, path: Path) -> Self {
        let parts = BufWriter::with_capacity(place.store.clone(), path, PART_SIZE_BYTES)
            .with_max_concurrency(2);
        Self { parts, part: Vec::new() }
    }

    /// Sends the rest; the file is complete in storage afterwards. An upload that failed
    /// to finish cleans up after itself when it is dropped.
    pub fn finish(&mut self) -> Outcome<()> {
        if !self.part.is_empty() {
            self.send()?;
        }
        Ok(runtime()?.block_on(self.parts.shutdown())?)
    }

    pub fn abort(&mut self) {
        if let Ok(runtime) = runtime() {
            // Best effort: parts that were sent are dropped by the store's own rules.
            let _ = runtime.block_on(self.parts.abort());
        }
    }

    fn send(&mut self) -> Result<(), Error> {
        let part = std::mem::take(&mut self.part);
        let runtime = runtime().map_err(|failure| Error::other(failure.detail))?;
        runtime.block_on(self.parts.put(part.into())).map_err(Error::other)
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let taken = bytes.len().min(PART_SIZE_BYTES - self.part.len());
        self.part.extend_from_slice(&bytes[..taken]);
        if self.part.len() == PART_SIZE_BYTES {
            self.send()?;
            self.part.reserve_exact(PART_SIZE_BYTES);
        }
        Ok(taken)
    }

    /// Parts go out when they are full, and the last one in `finish`.
    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
