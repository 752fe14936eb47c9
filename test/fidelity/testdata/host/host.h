// Functions of the C library that the interpreter does not model, for the programs that are compared: files in memory, sscanf and random numbers. Both
// sides run these as IR. Names are replaced after the headers that declare them.
#ifndef HOST_H
#define HOST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // as tcc defines it
#endif
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

int host_open(const char *, int, ...);
int host_close(int);
ssize_t host_read(int, void *, size_t);
off_t host_lseek(int, off_t, int);
int host_unlink(const char *);
FILE *host_fopen(const char *, const char *);
FILE *host_fdopen(int, const char *);
FILE *host_tmpfile(void);
int host_fclose(FILE *);
int host_fflush(FILE *);
int host_fileno(FILE *);
size_t host_fread(void *, size_t, size_t, FILE *);
size_t host_fwrite(const void *, size_t, size_t, FILE *);
int host_fgetc(FILE *);
int host_fputc(int, FILE *);
int host_fputs(const char *, FILE *);
char *host_fgets(char *, int, FILE *);
int host_fprintf(FILE *, const char *, ...);
int host_feof(FILE *);
int host_ferror(FILE *);
void host_rewind(FILE *);
int host_setvbuf(FILE *, char *, int, size_t);
int host_sscanf(const char *, const char *, ...);
void host_srandom(unsigned);
long host_random(void);
ssize_t host_getrandom(void *, size_t, unsigned);

#undef getc
#undef putc
#define open host_open
#define close host_close
#define read host_read
#define lseek host_lseek
#define unlink host_unlink
#define fopen host_fopen
#define fdopen host_fdopen
#define tmpfile host_tmpfile
#define fclose host_fclose
#define fflush host_fflush
#define fileno host_fileno
#define fread host_fread
#define fwrite host_fwrite
#define fgetc host_fgetc
#define getc host_fgetc
#define fputc host_fputc
#define putc host_fputc
#define fputs host_fputs
#define fgets host_fgets
#define fprintf host_fprintf
#define feof host_feof
#define ferror host_ferror
#define rewind host_rewind
#define setvbuf host_setvbuf
#define sscanf host_sscanf
#define srandom host_srandom
#define random host_random
#define getrandom host_getrandom
#endif
