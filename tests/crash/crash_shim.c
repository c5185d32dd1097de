// Stops the process at its n-th operation on the outside world: for LD_PRELOAD.
//
// Counts writes, creates, renames, links, unlinks, truncates, fsyncs, sends, receives and
// connects, whichever language they come from. At the n-th one the process ends at once,
// as SIGKILL would end it: nothing is flushed, no handler runs. With CRASH_SHIM_TORN set,
// an n-th write first writes the front half of its bytes, as a power cut in it might.
//
//   CRASH_SHIM_AT=n        stop before the n-th operation (1 is the first); 0 only counts
//   CRASH_SHIM_TORN=1      tear the n-th operation if it is a write
//   CRASH_SHIM_LOG=file    on an orderly exit, the number of operations goes there
//   CRASH_SHIM_TRACE=file  one letter an operation, to see what n stands for
//
// CrashShimStopAtLink(n), called in the process, stops it before its n-th hard link from then
// on: that is what a commit to a Delta log on a local disk ends with.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long count;
static long stop_at;
static int torn;
static int trace_fd = -1;
static atomic_long links_left;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void Start(void) {
  const char* at = getenv("CRASH_SHIM_AT");
  stop_at = at ? atol(at) : 0;
  torn = getenv("CRASH_SHIM_TORN") != NULL;
  const char* trace = getenv("CRASH_SHIM_TRACE");
  if (trace) {
    trace_fd = (int)syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
}

__attribute__((destructor)) static void End(void) {
  const char* log = getenv("CRASH_SHIM_LOG");
  if (!log) return;
  char text[32];
  const int size = snprintf(text, sizeof text, "%ld\n", atomic_load(&count));
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd >= 0) {
    syscall(SYS_write, fd, text, (size_t)size);
    syscall(SYS_close, fd);
  }
}

static void Stop(void) { syscall(SYS_exit_group, 137); }

// Counts one operation; true if it is the one to stop at.
static int Reached(char letter) {
  const long n = atomic_fetch_add(&count, 1) + 1;
  if (trace_fd >= 0) syscall(SYS_write, trace_fd, &letter, (size_t)1);
  return stop_at > 0 && n >= stop_at;
}

static void Count(char letter) {
  if (Reached(letter)) Stop();
}

void CrashShimStopAtLink(long n) { atomic_store(&links_left, n); }

static void CountLink(void) {
  if (atomic_load(&links_left) > 0 && atomic_fetch_sub(&links_left, 1) == 1) Stop();
  Count('l');
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (fd > 2 && Reached('w')) {
    if (torn) syscall(SYS_write, fd, bytes, size / 2);
    Stop();
  }
  return REAL(write)(fd, bytes, size);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  if (Reached('w')) {
    if (torn) syscall(SYS_pwrite64, fd, bytes, size / 2, at);
    Stop();
  }
  return REAL(pwrite)(fd, bytes, size, at);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  if (Reached('w')) {
    if (torn) syscall(SYS_pwrite64, fd, bytes, size / 2, at);
    Stop();
  }
  return REAL(pwrite64)(fd, bytes, size, at);
}
ssize_t writev(int fd, const struct iovec* parts, int part_count) {
  if (fd > 2) Count('w');
  return REAL(writev)(fd, parts, part_count);
}

// open and its kin: only what may create or truncate counts.
#define OPEN_BODY(name, call)                                   \
  int mode = 0;                                                 \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list rest;                                               \
    va_start(rest, flags);                                      \
    mode = va_arg(rest, int);                                   \
    va_end(rest);                                               \
    Count('o');                                                 \
  }                                                             \
  return call;

int open(const char* path, int flags, ...) {
  OPEN_BODY(open, REAL(open)(path, flags, mode))
}
int open64(const char* path, int flags, ...) {
  OPEN_BODY(open64, REAL(open64)(path, flags, mode))
}
int openat(int at, const char* path, int flags, ...) {
  OPEN_BODY(openat, REAL(openat)(at, path, flags, mode))
}
int openat64(int at, const char* path, int flags, ...) {
  OPEN_BODY(openat64, REAL(openat64)(at, path, flags, mode))
}

int mkdir(const char* path, mode_t mode) {
  Count('m');
  return REAL(mkdir)(path, mode);
}
int rename(const char* from, const char* to) {
  Count('r');
  return REAL(rename)(from, to);
}
int renameat(int a, const char* from, int b, const char* to) {
  Count('r');
  return REAL(renameat)(a, from, b, to);
}
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  Count('r');
  return REAL(renameat2)(a, from, b, to, flags);
}
int link(const char* from, const char* to) {
  CountLink();
  return REAL(link)(from, to);
}
int linkat(int a, const char* from, int b, const char* to, int flags) {
  CountLink();
  return REAL(linkat)(a, from, b, to, flags);
}
int unlink(const char* path) {
  Count('u');
  return REAL(unlink)(path);
}
int unlinkat(int at, const char* path, int flags) {
  Count('u');
  return REAL(unlinkat)(at, path, flags);
}
int ftruncate(int fd, off_t size) {
  Count('t');
  return REAL(ftruncate)(fd, size);
}
int ftruncate64(int fd, off64_t size) {
  Count('t');
  return REAL(ftruncate64)(fd, size);
}
int fsync(int fd) {
  Count('f');
  return REAL(fsync)(fd);
}
int fdatasync(int fd) {
  Count('f');
  return REAL(fdatasync)(fd);
}

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  Count('s');
  return REAL(send)(fd, bytes, size, flags);
}
ssize_t sendto(int fd, const void* bytes, size_t size, int flags,
               const struct sockaddr* to, socklen_t to_size) {
  Count('s');
  return REAL(sendto)(fd, bytes, size, flags, to, to_size);
}
ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  Count('s');
  return REAL(sendmsg)(fd, message, flags);
}
ssize_t recv(int fd, void* into, size_t size, int flags) {
  Count('v');
  return REAL(recv)(fd, into, size, flags);
}
ssize_t recvfrom(int fd, void* into, size_t size, int flags, struct sockaddr* from,
                 socklen_t* from_size) {
  Count('v');
  return REAL(recvfrom)(fd, into, size, flags, from, from_size);
}
ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
  Count('v');
  return REAL(recvmsg)(fd, message, flags);
}
int connect(int fd, const struct sockaddr* to, socklen_t size) {
  Count('c');
  return REAL(connect)(fd, to, size);
}
