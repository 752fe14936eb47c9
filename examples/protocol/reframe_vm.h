/* The protocol between reframe and an interpreter (doc/user/protocol.md), for C99 and C++. Copy this file into your project; it needs only the
 * C library.
 *
 *     static void resume(const rf_json *request) {
 *       const rf_json *frame = rf_get(request, "frames")->first;            // the innermost
 *       uint64_t local0 = rf_bits(rf_get(rf_get(frame, "locals")->first, "bits"));
 *       uint64_t word[2];
 *       rf_range want = {local0, sizeof word, word, 0};
 *       rf_read(&want, 1);                                                  // from the process, as it was
 *       if (!want.ok) { rf_unsupported("local 0 cannot be read"); return; }
 *       ... run the bytecode ...
 *       rf_steps(12);
 *       rf_returned("i64", word[1], "7");
 *     }
 *     int main(void) { rf_serve("myvm", resume); }
 *
 * Standard output belongs to the protocol: output of the program goes through rf_output. If reframe has ended, the process ends. Messages are
 * bounded: a line has at most 16 MiB, and values are nested at most 64 deep. */
#ifndef REFRAME_VM_H
#define REFRAME_VM_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define RF_FUNCTION static __attribute__((unused))
#else
#define RF_FUNCTION static
#endif

/* A parsed value of a message. Lists and objects have their elements in first, linked by next. */
typedef enum { RF_NULL, RF_FALSE, RF_TRUE, RF_NUMBER, RF_STRING, RF_LIST, RF_OBJECT } rf_kind;
typedef struct rf_json {
  rf_kind kind;
  char *name;   /* name of a member of an object */
  char *text;   /* text of a string or a number */
  struct rf_json *first, *next;
} rf_json;

typedef struct {
  uint64_t at;
  size_t size;
  void *data;
  int ok; /* set by rf_read: the range was read */
} rf_range;

/* Text that grows. */
typedef struct {
  char *text;
  size_t size, room;
} rf_text;

static struct {
  char *line;       /* the message that is being parsed */
  size_t size, room, at;
  int depth, wrong; /* of the reader */
  long last;        /* id of our last request */
  rf_text answer, out;
  int answered, offers;
} rf;

RF_FUNCTION void *rf_alloc(void *old, size_t size) {
  void *p = realloc(old, size);
  if (!p) fputs("out of memory\n", stderr), exit(70);
  return p;
}

RF_FUNCTION void rf_add(rf_text *t, const char *s, size_t n) {
  if (t->size + n + 1 > t->room) t->text = (char *)rf_alloc(t->text, t->room = 2 * (t->size + n) + 256);
  memcpy(t->text + t->size, s, n);
  t->text[t->size += n] = 0;
}

RF_FUNCTION void rf_addf(rf_text *t, const char *format, ...) {
  char part[256];
  va_list list;
  va_start(list, format);
  int n = vsnprintf(part, sizeof part, format, list);
  va_end(list);
  rf_add(t, part, n < 0 ? 0 : (size_t)n < sizeof part ? (size_t)n : sizeof part - 1);
}

/* Adds a string in the form of JSON. Bytes other than ASCII are copied unchanged. */
RF_FUNCTION void rf_quote(rf_text *t, const char *s, size_t n) {
  rf_add(t, "\"", 1);
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) rf_addf(t, "\\u%04x", c);
    else rf_add(t, s + i, 1);
  }
  rf_add(t, "\"", 1);
}

/* ---- reading JSON ---- */

RF_FUNCTION void rf_free(rf_json *j) {
  while (j) {
    rf_json *next = j->next;
    rf_free(j->first);
    free(j->name), free(j->text), free(j);
    j = next;
  }
}

RF_FUNCTION int rf_peek(void) {
  while (rf.at < rf.size && strchr(" \t\r\n", rf.line[rf.at])) rf.at++;
  return rf.at < rf.size ? (unsigned char)rf.line[rf.at] : -1;
}

RF_FUNCTION int rf_take(int c) {
  if (rf_peek() != c) return 0;
  rf.at++;
  return 1;
}

RF_FUNCTION int rf_hex(int c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

RF_FUNCTION char *rf_string(void) { /* after the opening quote; surrogates become question marks */
  rf_text t = {0, 0, 0};
  rf_add(&t, "", 0);
  while (rf.at < rf.size && rf.line[rf.at] != '"') {
    char c = rf.line[rf.at++];
    if (c != '\\') {
      rf_add(&t, &c, 1);
      continue;
    }
    c = rf.at < rf.size ? rf.line[rf.at++] : 0;
    const char *from = "bfnrt", *to = "\b\f\n\r\t", *known = c ? strchr(from, c) : 0;
    if (known) rf_add(&t, to + (known - from), 1);
    else if (c == '"' || c == '\\' || c == '/') rf_add(&t, &c, 1);
    else if (c == 'u' && rf.at + 4 <= rf.size) {
      unsigned v = 0;
      for (int i = 0; i < 4; i++) {
        int digit = rf_hex((unsigned char)rf.line[rf.at++]);
        if (digit < 0) rf.wrong = 1;
        v = v << 4 | (unsigned)(digit & 15);
      }
      if (v < 0x80) rf_addf(&t, "%c", v ? (int)v : '?');
      else if (v < 0x800) rf_addf(&t, "%c%c", (int)(0xc0 | v >> 6), (int)(0x80 | (v & 63)));
      else if (v >= 0xd800 && v < 0xe000) rf_add(&t, "?", 1);
      else rf_addf(&t, "%c%c%c", (int)(0xe0 | v >> 12), (int)(0x80 | (v >> 6 & 63)), (int)(0x80 | (v & 63)));
    } else rf.wrong = 1;
  }
  if (rf.at++ >= rf.size) rf.wrong = 1;
  return t.text;
}

RF_FUNCTION rf_json *rf_value(void) {
  rf_json *j = (rf_json *)rf_alloc(0, sizeof *j), **to = &j->first;
  memset(j, 0, sizeof *j);
  int c = rf_peek();
  if (++rf.depth > 64) rf.wrong = 1;
  if (rf.wrong) {
  } else if (c == '{' || c == '[') {
    int object = c == '{', end = object ? '}' : ']';
    j->kind = object ? RF_OBJECT : RF_LIST;
    rf.at++;
    while (!rf.wrong && !rf_take(end)) {
      if (j->first && !rf_take(',')) { rf.wrong = 1; break; }
      char *name = 0;
      if (object && (!rf_take('"') || !(name = rf_string()) || !rf_take(':'))) { free(name), rf.wrong = 1; break; }
      *to = rf_value();
      (*to)->name = name;
      to = &(*to)->next;
    }
  } else if (c == '"') {
    rf.at++;
    j->kind = RF_STRING, j->text = rf_string();
  } else {
    size_t from = rf.at;
    while (rf.at < rf.size && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", rf.line[rf.at])) rf.at++;
    rf_text t = {0, 0, 0};
    rf_add(&t, rf.line + from, rf.at - from);
    j->text = t.text;
    if (!strcmp(t.text, "null")) j->kind = RF_NULL;
    else if (!strcmp(t.text, "true")) j->kind = RF_TRUE;
    else if (!strcmp(t.text, "false")) j->kind = RF_FALSE;
    else if (t.size && (t.text[0] == '-' || (t.text[0] >= '0' && t.text[0] <= '9'))) j->kind = RF_NUMBER;
    else rf.wrong = 1;
  }
  rf.depth--;
  return j;
}

/* Reads a line. Returns 0 if it is not JSON. At the end of the input, ends the process. */
RF_FUNCTION rf_json *rf_message(void) {
  int c;
  rf.size = rf.at = 0;
  while ((c = getchar()) != '\n') {
    if (c == EOF || rf.size >= 16u << 20) exit(0);
    if (rf.size + 1 > rf.room) rf.line = (char *)rf_alloc(rf.line, rf.room = 2 * rf.room + 4096);
    rf.line[rf.size++] = (char)c;
  }
  rf.wrong = rf.depth = 0;
  rf_json *j = rf_value();
  if (rf_peek() != -1) rf.wrong = 1;
  if (!rf.wrong) return j;
  rf_free(j);
  return 0;
}

/* ---- access to values; 0 if one does not exist ---- */

RF_FUNCTION const rf_json *rf_get(const rf_json *j, const char *name) {
  for (const rf_json *m = j && j->kind == RF_OBJECT ? j->first : 0; m; m = m->next)
    if (!strcmp(m->name, name)) return m;
  return 0;
}

RF_FUNCTION const char *rf_str(const rf_json *j) { return j && j->kind == RF_STRING ? j->text : 0; }
RF_FUNCTION int64_t rf_int(const rf_json *j, int64_t otherwise) { return j && j->kind == RF_NUMBER ? strtoll(j->text, 0, 10) : otherwise; }
RF_FUNCTION int rf_true(const rf_json *j) { return j && j->kind == RF_TRUE; }
RF_FUNCTION uint64_t rf_bits(const rf_json *j) { return rf_str(j) ? strtoull(rf_str(j), 0, 16) : 0; } /* of "0x2a" */
RF_FUNCTION size_t rf_count(const rf_json *j) {
  size_t n = 0;
  for (const rf_json *m = j ? j->first : 0; m; m = m->next) n++;
  return n;
}

/* ---- requests ---- */

RF_FUNCTION void rf_send(rf_text *t) {
  rf_add(t, "\n", 1);
  if (fwrite(t->text, 1, t->size, stdout) != t->size || fflush(stdout)) exit(0);
  t->size = 0;
}

RF_FUNCTION rf_text *rf_ask(const char *method) {
  rf.out.size = 0;
  rf_addf(&rf.out, "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"%s\",\"params\":", ++rf.last, method);
  return &rf.out;
}

/* Sends the request that rf_ask has begun, and waits for the answer, which the caller frees. */
RF_FUNCTION rf_json *rf_answer(void) {
  rf_add(&rf.out, "}", 1);
  rf_send(&rf.out);
  for (;;) {
    rf_json *j = rf_message();
    if (j && rf_int(rf_get(j, "id"), -1) == rf.last && !rf_get(j, "method")) return j;
    rf_free(j);
  }
}

/* Reads ranges in one request; ok of each is set if it was read. */
RF_FUNCTION void rf_read(rf_range *list, size_t n) {
  rf_text *t = rf_ask("memory.read");
  rf_addf(t, "{\"ranges\":[");
  for (size_t i = 0; i < n; i++) rf_addf(t, "%s{\"at\":\"0x%llx\",\"size\":%zu}", i ? "," : "", (unsigned long long)list[i].at, list[i].size);
  rf_addf(t, "]}");
  rf_json *j = rf_answer();
  const rf_json *part = rf_get(j, "result");
  part = part ? part->first : 0;
  for (size_t i = 0; i < n; i++, part = part ? part->next : 0) {
    const char *hex = rf_str(rf_get(part, "data"));
    list[i].ok = hex && strlen(hex) == 2 * list[i].size;
    for (size_t k = 0; list[i].ok && k < list[i].size; k++)
      ((unsigned char *)list[i].data)[k] = (unsigned char)(rf_hex((unsigned char)hex[2 * k]) << 4 | rf_hex((unsigned char)hex[2 * k + 1]));
  }
  rf_free(j);
}

/* Writes ranges in one request. Writes all of them, or none and returns 0. */
RF_FUNCTION int rf_write(const rf_range *list, size_t n) {
  rf_text *t = rf_ask("memory.write");
  rf_addf(t, "{\"ranges\":[");
  for (size_t i = 0; i < n; i++) {
    rf_addf(t, "%s{\"at\":\"0x%llx\",\"data\":\"", i ? "," : "", (unsigned long long)list[i].at);
    for (size_t k = 0; k < list[i].size; k++) rf_addf(t, "%02x", ((const unsigned char *)list[i].data)[k]);
    rf_addf(t, "\"}");
  }
  rf_addf(t, "]}");
  rf_json *j = rf_answer();
  int ok = rf_get(j, "result") != 0;
  rf_free(j);
  return ok;
}

/* Allocates memory that the process does not use, filled with zeros; 0 if there is none. */
RF_FUNCTION uint64_t rf_allocate(uint64_t size, unsigned align) {
  rf_addf(rf_ask("memory.allocate"), "{\"size\":%llu,\"align\":%u}", (unsigned long long)size, align);
  rf_json *j = rf_answer();
  uint64_t at = rf_bits(rf_get(rf_get(j, "result"), "at"));
  rf_free(j);
  return at;
}

/* Looks up addresses of symbols; 0 for unknown ones. */
RF_FUNCTION void rf_symbols(const char *const *names, size_t n, uint64_t *at) {
  rf_text *t = rf_ask("symbol");
  rf_addf(t, "{\"names\":[");
  for (size_t i = 0; i < n; i++) {
    if (i) rf_add(t, ",", 1);
    rf_quote(t, names[i], strlen(names[i]));
  }
  rf_addf(t, "]}");
  rf_json *j = rf_answer();
  const rf_json *found = rf_get(j, "result");
  found = found ? found->first : 0;
  for (size_t i = 0; i < n; i++, found = found ? found->next : 0) at[i] = rf_bits(rf_get(found, "at"));
  rf_free(j);
}

/* Sends output of the program. */
RF_FUNCTION void rf_output(const char *text, size_t n) {
  rf.out.size = 0;
  rf_addf(&rf.out, "{\"jsonrpc\":\"2.0\",\"method\":\"output\",\"params\":{\"text\":");
  rf_quote(&rf.out, text, n);
  rf_addf(&rf.out, "}}");
  rf_send(&rf.out);
}

/* ---- the answer to a resume: members may be added in any order; rf_unsupported and rf_malformed discard the others ---- */

RF_FUNCTION void rf_member(const char *name) {
  rf_addf(&rf.answer, "%s\"%s\":", rf.answer.size ? "," : "", name);
}
RF_FUNCTION void rf_returned(const char *type, uint64_t bits, const char *text) { /* bits as compiled code returns them; type 0: no result */
  rf.answered = 1;
  rf_member("returned");
  if (!type) { rf_addf(&rf.answer, "null"); return; }
  rf_addf(&rf.answer, "{\"type\":\"%s\",\"bits\":\"0x%llx\"", type, (unsigned long long)bits);
  if (text) rf_addf(&rf.answer, ",\"text\":"), rf_quote(&rf.answer, text, strlen(text));
  rf_addf(&rf.answer, "}");
}
RF_FUNCTION void rf_threw(const char *text) {
  rf.answered = 1;
  rf_member("threw"), rf_addf(&rf.answer, "{\"text\":"), rf_quote(&rf.answer, text, strlen(text)), rf_addf(&rf.answer, "}");
}
RF_FUNCTION void rf_steps(uint64_t n) { rf_member("steps"), rf_addf(&rf.answer, "%llu", (unsigned long long)n); }
/* Reports whether a lock was taken, or one is held that was not held before. Without a report of 0, nothing is committed. */
RF_FUNCTION void rf_locked(int locked) { rf_member("locked"), rf_addf(&rf.answer, locked ? "true" : "false"); }
RF_FUNCTION void rf_tail(const char *const *lines, size_t n) { /* oldest first */
  rf_member("tail"), rf_addf(&rf.answer, "[");
  for (size_t i = 0; i < n; i++) {
    if (i) rf_add(&rf.answer, ",", 1);
    rf_quote(&rf.answer, lines[i], strlen(lines[i]));
  }
  rf_addf(&rf.answer, "]");
}
RF_FUNCTION void rf_refuse(const char *member, const char *why) {
  rf.answer.size = 0, rf.answered = 1;
  rf_member(member), rf_quote(&rf.answer, why, strlen(why));
}
RF_FUNCTION void rf_unsupported(const char *why) { rf_refuse("unsupported", why); } /* this interpreter cannot run the frames */
RF_FUNCTION void rf_malformed(const char *why) { rf_refuse("malformed", why); }     /* no interpreter can have such frames */

/* ---- stopping: reframe requests it only after rf_offer_step, called before rf_serve ---- */

/* Call this before each instruction. Returns whether to stop here, given the number of instructions run and of frames. */
RF_FUNCTION int rf_stops(const rf_json *request, uint64_t ran, size_t frames) {
  const rf_json *stop = rf_get(request, "stop");
  int64_t most = rf_int(rf_get(stop, "frames"), 0);
  return stop && ran >= (uint64_t)rf_int(rf_get(stop, "after"), 1) && (!most || frames <= (size_t)most);
}
/* To stop, answer with rf_stopped and rf_steps. This function adds a value to the text of the frames; type 0: dead; index -1: no index. */
RF_FUNCTION void rf_add_value(rf_text *t, int64_t index, const char *type, uint64_t bits, const char *text) {
  rf_addf(t, "{");
  if (index >= 0) rf_addf(t, "\"index\":%lld,", (long long)index);
  if (!type) { rf_addf(t, "\"dead\":true}"); return; }
  rf_addf(t, "\"type\":\"%s\",\"bits\":\"0x%llx\",\"value\":", type, (unsigned long long)bits), rf_quote(t, text, strlen(text)), rf_addf(t, "}");
}
RF_FUNCTION void rf_stopped(const rf_text *frames) { /* a list of the protocol's frames, innermost first */
  rf.answered = 1;
  rf_member("stopped"), rf_addf(&rf.answer, "{\"frames\":"), rf_add(&rf.answer, frames->text, frames->size), rf_addf(&rf.answer, "}");
}
RF_FUNCTION void rf_offer_step(void) { rf.offers = 1; }

/* Serves requests until the input ends, and then ends the process. */
RF_FUNCTION void rf_serve(const char *name, void (*resume)(const rf_json *request)) {
  for (;;) {
    rf_json *j = rf_message();
    const rf_json *id = rf_get(j, "id");
    const char *method = rf_str(rf_get(j, "method")), *what = "result";
    rf.answer.size = 0, rf.answered = 1, rf.last = 0;
    if (!j || !method) {
      what = "error", rf_addf(&rf.answer, "\"code\":%d,\"message\":\"no request\"", j ? -32600 : -32700);
    } else if (!strcmp(method, "initialize")) {
      rf_addf(&rf.answer, "\"protocol\":\"reframe.vm/1\",\"name\":"), rf_quote(&rf.answer, name, strlen(name));
      if (rf.offers) rf_addf(&rf.answer, ",\"step\":true");
    } else if (!strcmp(method, "resume")) {
      rf.answered = 0;
      resume(rf_get(j, "params"));
      if (!rf.answered) rf_unsupported("no answer");
    } else {
      what = "error", rf_addf(&rf.answer, "\"code\":-32601,\"message\":\"no such method\"");
    }
    rf.out.size = 0;
    rf_addf(&rf.out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"%s\":{", id && id->kind == RF_NUMBER ? id->text : "null", what);
    rf_add(&rf.out, rf.answer.text, rf.answer.size);
    rf_addf(&rf.out, "}}");
    if (id || !method) rf_send(&rf.out); /* notifications are not answered */
    rf_free(j);
  }
}

#endif
