/* Preloaded: the n-th call that writes to a file under a folder fails, and if asked to, every later one too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[4096];
static long count, first, failed;
static int with, lasting;

void fault_arm(const char *under, long nth, int error, int for_good) {
  strncpy(folder, under, sizeof folder - 1);
  count = failed = 0, first = nth, with = error, lasting = for_good;
}
void fault_disarm(void) { folder[0] = 0; }
long fault_count(void) { return count; }
long fault_failed(void) { return failed; }

static int hit(void) {
  long n = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
  if (first && (n == first || (lasting && n > first))) {
    __atomic_add_fetch(&failed, 1, __ATOMIC_SEQ_CST);
    errno = with;
    return 1;
  }
  return 0;
}
static int at_path(const char *path) { return folder[0] && !strncmp(path, folder, strlen(folder)) && hit(); }
static int at_file(int fd) {
  char link[64], path[4096];
  if (!folder[0]) return 0;
  int before = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  errno = before;
  if (n < 0) return 0;
  path[n] = 0;
  return at_path(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define ON_FILE(type, name, parameters, arguments)                                                                   \
  type name parameters { return at_file(fd) ? (type)-1 : REAL(name) arguments; }
ON_FILE(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n))
ON_FILE(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
ON_FILE(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o))
ON_FILE(ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t o), (fd, b, n, o))
ON_FILE(int, fsync, (int fd), (fd))
ON_FILE(int, fdatasync, (int fd), (fd))
ON_FILE(int, ftruncate, (int fd, off_t n), (fd, n))
ON_FILE(int, ftruncate64, (int fd, off64_t n), (fd, n))
ON_FILE(int, fallocate, (int fd, int m, off_t o, off_t n), (fd, m, o, n))
ON_FILE(int, fallocate64, (int fd, int m, off64_t o, off64_t n), (fd, m, o, n))

int mkdir(const char *path, mode_t mode) { return at_path(path) ? -1 : REAL(mkdir)(path, mode); }
int rename(const char *from, const char *to) { return at_path(to) ? -1 : REAL(rename)(from, to); }

#define OPENED(name, ...)                                                                                            \
  {                                                                                                                  \
    mode_t mode = 0;                                                                                                 \
    if (flags & O_CREAT) {                                                                                           \
      va_list rest;                                                                                                  \
      va_start(rest, flags);                                                                                         \
      mode = va_arg(rest, mode_t);                                                                                   \
      va_end(rest);                                                                                                  \
    }                                                                                                                \
    if ((flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR)) && at_path(path)) return -1;                               \
    return REAL(name)(__VA_ARGS__, flags, mode);                                                                     \
  }
int open(const char *path, int flags, ...) OPENED(open, path)
int open64(const char *path, int flags, ...) OPENED(open64, path)
int openat(int at, const char *path, int flags, ...) OPENED(openat, at, path)
int openat64(int at, const char *path, int flags, ...) OPENED(openat64, at, path)
