//! Reads one query through tiberius and prints each row as a JSON array of canonical texts
//! (tests/peers/values.py), null for NULL. Settings come in the environment. With a word on
//! the command line it does the exercises instead.

mod exercises;

use std::env;
use std::error::Error;

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};
use tiberius::{AuthMethod, Client, ColumnData, Config, EncryptionLevel, FromSql};
use tokio::net::TcpStream;
use tokio_util::compat::TokioAsyncWriteCompatExt;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// All the digits of a decimal, with its scale.
fn decimal(value: i128, scale: usize) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

/// Seven digits of a fraction, where chrono prints three, six or nine.
fn ticks(nanoseconds: u32) -> String {
    format!("{:07}", nanoseconds / 100)
}

fn moment(value: &NaiveDateTime) -> String {
    format!("{}.{}", value.format("%Y-%m-%d %H:%M:%S"), ticks(value.and_utc().timestamp_subsec_nanos()))
}

fn canonical(value: &ColumnData<'static>) -> Outcome<Option<String>> {
    Ok(match value {
        ColumnData::U8(held) => held.map(|v| v.to_string()),
        ColumnData::I16(held) => held.map(|v| v.to_string()),
        ColumnData::I32(held) => held.map(|v| v.to_string()),
        ColumnData::I64(held) => held.map(|v| v.to_string()),
        ColumnData::F32(held) => held.map(|v| v.to_string()),
        ColumnData::F64(held) => held.map(|v| v.to_string()),
        ColumnData::Bit(held) => held.map(|v| u8::from(v).to_string()),
        ColumnData::String(held) => held.as_ref().map(|v| v.to_string()),
        ColumnData::Guid(held) => held.map(|v| v.to_string().to_uppercase()),
        ColumnData::Binary(held) => held.as_ref().map(|bytes| {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("0x{digits}")
        }),
        ColumnData::Numeric(held) => held.map(|v| decimal(v.value(), v.scale().into())),
        ColumnData::Xml(held) => held.as_ref().map(|v| v.to_string()),
        ColumnData::Date(_) => NaiveDate::from_sql(value)?.map(|v| v.format("%Y-%m-%d").to_string()),
        ColumnData::Time(_) => NaiveTime::from_sql(value)?.map(|v| {
            let fraction = v.format("%9f").to_string();
            format!("{}.{}", v.format("%H:%M:%S"), &fraction[..7])
        }),
        ColumnData::DateTime(_) | ColumnData::SmallDateTime(_) | ColumnData::DateTime2(_) => {
            NaiveDateTime::from_sql(value)?.map(|v| moment(&v))
        }
        ColumnData::DateTimeOffset(_) => DateTime::<FixedOffset>::from_sql(value)?
            .map(|v| format!("{} {}", moment(&v.naive_local()), v.format("%:z"))),
    })
}

fn configuration() -> Outcome<Config> {
    let mut made = Config::new();
    made.host(env::var("PEER_HOST")?);
    made.port(env::var("PEER_PORT")?.parse()?);
    made.database(env::var("PEER_DATABASE")?);
    made.authentication(AuthMethod::sql_server(env::var("PEER_USER")?, env::var("PEER_PASSWORD")?));
    made.encryption(match env::var("PEER_MODE")?.as_str() {
        "clear" => EncryptionLevel::NotSupported,
        "login only" => EncryptionLevel::Off,
        "tls" => EncryptionLevel::Required,
        _ => EncryptionLevel::Strict,
    });
    let authority = env::var("PEER_AUTHORITY")?;
    if !authority.is_empty() {
        made.trust_cert_ca(authority);
    }
    Ok(made)
}

async fn read() -> Outcome<()> {
    let configured = configuration()?;
    let socket = TcpStream::connect(configured.get_addr()).await?;
    let mut client = Client::connect(configured, socket.compat_write()).await?;
    if env::args().len() > 1 {
        return exercises::exercise(&mut client).await;
    }
    let rows = client.simple_query(env::var("PEER_QUERY")?).await?.into_first_result().await?;
    for row in rows {
        let texts = row.into_iter().map(|value| canonical(&value)).collect::<Outcome<Vec<_>>>()?;
        println!("{}", serde_json::to_string(&texts)?);
    }
    Ok(())
}

fn main() -> Outcome<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(read())
}
