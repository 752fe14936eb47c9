// Standard input begins with the files of the run: a line "SIZE NAME" and the bytes of each, then an empty line. Input of the program follows. At the end
// the files that the program has written follow its output in the same form, after a line "files".
#undef open
#undef close
#undef read
#undef lseek
#undef unlink
#undef fopen
#undef fdopen
#undef tmpfile
#undef fclose
#undef fflush
#undef fileno
#undef fread
#undef fwrite
#undef fgetc
#undef fputc
#undef fputs
#undef fgets
#undef fprintf
#undef feof
#undef ferror
#undef rewind
#undef setvbuf
#undef sscanf
#undef srandom
#undef random
#undef getrandom

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

enum { FILES = 256, OPEN = 16, FIRST = 3, NAME = 100 };

struct file {
  char name[NAME]; // "" for a temporary file
  char *data;
  size_t size, room;
  int there, written;
};

// opened is a descriptor and its FILE.
struct opened {
  struct file *file; // NULL if it is closed
  size_t at;
  int ended;
};

static struct file files[FILES];
static struct opened opened[OPEN];

static void fail(const char *why) {
  fputs(why, stderr);
  abort();
}

static struct file *find(const char *name) {
  for (int k = 0; k < FILES; k++)
    if (files[k].there && !strcmp(files[k].name, name)) return &files[k];
  return NULL;
}

static struct file *make(const char *name) {
  for (int k = 0; k < FILES; k++)
    if (!files[k].there) {
      if (strlen(name) >= NAME) fail("a name is too long\n");
      memset(&files[k], 0, sizeof files[k]);
      strcpy(files[k].name, name);
      files[k].there = 1;
      return &files[k];
    }
  fail("too many files\n");
  return NULL;
}

static void resize(struct file *f, size_t size) {
  if (size > f->room) {
    f->room = 2 * size;
    f->data = realloc(f->data, f->room);
  }
  if (size > f->size) memset(f->data + f->size, 0, size - f->size);
  f->size = size;
}

static void give(void) {
  puts("files");
  for (int k = 0; k < FILES; k++)
    if (files[k].there && files[k].written && files[k].name[0]) {
      printf("%zu %s\n", files[k].size, files[k].name);
      fwrite(files[k].data, 1, files[k].size, stdout);
    }
  fflush(stdout);
}

__attribute__((constructor)) static void take(void) {
  char line[NAME + 30];
  for (;;) {
    size_t n = 0;
    while (n < sizeof line - 1 && read(0, line + n, 1) == 1 && line[n] != '\n') n++;
    line[n] = 0;
    if (!n) break;
    char *name;
    size_t size = strtoul(line, &name, 10);
    struct file *f = make(name + 1);
    resize(f, size);
    for (size_t at = 0; at < size;) {
      ssize_t got = read(0, f->data + at, size - at);
      if (got <= 0) fail("a file is too short\n");
      at += got;
    }
  }
  atexit(give);
}

static struct opened *own(FILE *f) {
  char *p = (char *)f;
  return p >= (char *)opened && p < (char *)(opened + OPEN) ? (struct opened *)f : NULL;
}

static struct opened *described(int fd) {
  if (fd < FIRST || fd >= FIRST + OPEN || !opened[fd - FIRST].file) {
    errno = EBADF;
    return NULL;
  }
  return &opened[fd - FIRST];
}

static int describe(struct file *f, size_t at) {
  for (int k = 0; k < OPEN; k++)
    if (!opened[k].file) {
      opened[k] = (struct opened){f, at, 0};
      return k + FIRST;
    }
  fail("too many open files\n");
  return -1;
}

int host_open(const char *name, int flags, ...) {
  struct file *f = find(name);
  if (!f && !(flags & O_CREAT)) {
    errno = ENOENT;
    return -1;
  }
  if (!f) f = make(name);
  if (flags & O_TRUNC) f->size = 0;
  if (flags & (O_WRONLY | O_RDWR)) f->written = 1;
  return describe(f, flags & O_APPEND ? f->size : 0);
}

int host_close(int fd) {
  if (fd >= 0 && fd < FIRST) return 0;
  struct opened *o = described(fd);
  if (!o) return -1;
  o->file = NULL;
  return 0;
}

static size_t taken(struct opened *o, void *to, size_t n) {
  size_t left = o->at < o->file->size ? o->file->size - o->at : 0;
  o->ended = n > left;
  if (n > left) n = left;
  if (n) memcpy(to, o->file->data + o->at, n);
  o->at += n;
  return n;
}

ssize_t host_read(int fd, void *to, size_t n) {
  if (fd == 0) return read(fd, to, n);
  struct opened *o = described(fd);
  return o ? (ssize_t)taken(o, to, n) : -1;
}

off_t host_lseek(int fd, off_t to, int from) {
  struct opened *o = described(fd);
  if (!o) return -1;
  o->at = to + (from == SEEK_CUR ? (off_t)o->at : from == SEEK_END ? (off_t)o->file->size : 0);
  return o->at;
}

int host_unlink(const char *name) {
  struct file *f = find(name);
  if (!f) {
    errno = ENOENT;
    return -1;
  }
  f->there = 0;
  return 0;
}

FILE *host_fopen(const char *name, const char *mode) {
  int flags = *mode == 'r' ? O_RDONLY : *mode == 'w' ? O_WRONLY | O_CREAT | O_TRUNC : O_WRONLY | O_CREAT | O_APPEND;
  int fd = host_open(name, flags);
  return fd < 0 ? NULL : host_fdopen(fd, mode);
}

FILE *host_fdopen(int fd, const char *mode) {
  (void)mode;
  if (fd == 0) return stdin;
  if (fd == 1) return stdout;
  if (fd == 2) return stderr;
  return (FILE *)described(fd);
}

FILE *host_tmpfile(void) { return host_fdopen(describe(make(""), 0), "w+"); }

int host_fclose(FILE *f) {
  struct opened *o = own(f);
  if (!o) return fflush(f); // the files are written to it later
  o->file = NULL;
  return 0;
}

int host_fflush(FILE *f) { return own(f) ? 0 : fflush(f); }
int host_fileno(FILE *f) { return own(f) ? (int)(own(f) - opened) + FIRST : fileno(f); }

size_t host_fread(void *to, size_t size, size_t n, FILE *f) {
  if (!own(f)) return fread(to, size, n, f);
  return size ? taken(own(f), to, size * n) / size : 0;
}

size_t host_fwrite(const void *from, size_t size, size_t n, FILE *f) {
  struct opened *o = own(f);
  if (!o) return fwrite(from, size, n, f);
  if (o->at + size * n > o->file->size) resize(o->file, o->at + size * n);
  if (size * n) memcpy(o->file->data + o->at, from, size * n);
  o->at += size * n;
  return n;
}

int host_fgetc(FILE *f) {
  unsigned char c;
  if (!own(f)) return fgetc(f);
  return taken(own(f), &c, 1) ? c : EOF;
}

int host_fputc(int c, FILE *f) {
  char byte = (char)c;
  return host_fwrite(&byte, 1, 1, f) ? (unsigned char)byte : EOF;
}

int host_fputs(const char *s, FILE *f) { return host_fwrite(s, 1, strlen(s), f) ? 1 : 0; }

char *host_fgets(char *to, int n, FILE *f) {
  if (!own(f)) return fgets(to, n, f);
  int at = 0, c = 0;
  while (at < n - 1 && c != '\n' && (c = host_fgetc(f)) != EOF) to[at++] = (char)c;
  to[at] = 0;
  return at ? to : NULL;
}

int host_fprintf(FILE *f, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(NULL, 0, format, ap);
  va_end(ap);
  char *text = malloc(n + 1);
  va_start(ap, format);
  vsnprintf(text, n + 1, format, ap);
  va_end(ap);
  host_fwrite(text, 1, n, f);
  free(text);
  return n;
}

int host_feof(FILE *f) { return own(f) ? own(f)->ended : feof(f); }
int host_ferror(FILE *f) { return own(f) ? 0 : ferror(f); }
int host_setvbuf(FILE *f, char *buffer, int mode, size_t size) { return own(f) ? 0 : setvbuf(f, buffer, mode, size); }

void host_rewind(FILE *f) {
  if (own(f)) own(f)->at = 0, own(f)->ended = 0;
}

// scanned stores the text of one conversion and returns its end, or NULL if it does not match. left is the maximum size of the field.
static const char *scanned(const char *s, char verb, int length, size_t left, void *to) {
  char *end;
  switch (verb) {
  case 'c':
    if (!*s) return NULL;
    *(char *)to = *s;
    return s + 1;
  case 's':
    for (end = to; *s && !isspace((unsigned char)*s) && left; left--) *end++ = *s++;
    *end = 0;
    return end == to ? NULL : s;
  case 'f': {
    double v = strtod(s, &end);
    if (end != s && length) *(double *)to = v;
    if (end != s && !length) *(float *)to = (float)v;
    return end == s ? NULL : end;
  }
  }
  long v = strtol(s, &end, verb == 'x' ? 16 : verb == 'o' ? 8 : 10);
  if (end != s && length) *(long *)to = v;
  if (end != s && !length) *(int *)to = (int)v;
  return end == s ? NULL : end;
}

int host_sscanf(const char *s, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  int done = 0;
  for (; *format; format++) {
    if (isspace((unsigned char)*format)) {
      while (isspace((unsigned char)*s)) s++;
      continue;
    }
    if (*format != '%') {
      if (*s++ != *format) break;
      continue;
    }
    char *after;
    size_t left = strtoul(format + 1, &after, 10);
    int length = *after == 'l';
    format = after + length;
    if (*format != 'c')
      while (isspace((unsigned char)*s)) s++;
    s = scanned(s, *format, length, left ? left : (size_t)-1, va_arg(ap, void *));
    if (!s) break;
    done++;
  }
  va_end(ap);
  return done || (s && *s) ? done : EOF;
}

static unsigned long state;
void host_srandom(unsigned seed) { state = seed; }
long host_random(void) { return (long)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33); }

ssize_t host_getrandom(void *to, size_t n, unsigned flags) {
  (void)flags;
  for (size_t k = 0; k < n; k++) ((char *)to)[k] = (char)host_random();
  return (ssize_t)n;
}
