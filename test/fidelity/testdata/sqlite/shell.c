// Runs the statements of standard input in a database in memory. Lines that begin with a dot close it and open it again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

static sqlite3 *db;

static int row(void *name, int columns, char **values, char **names) {
  (void)name;
  for (int k = 0; k < columns; k++) printf("%s%s=%s", k ? "|" : "", names[k], values[k] ? values[k] : "NULL");
  puts("");
  return 0;
}

static void twice(sqlite3_context *context, int n, sqlite3_value **values) {
  (void)n;
  sqlite3_result_double(context, 2 * sqlite3_value_double(values[0]));
}

static void start(void) {
  if (sqlite3_open(":memory:", &db)) exit(3);
  sqlite3_create_function(db, "twice", 1, SQLITE_UTF8, NULL, twice, NULL, NULL);
}

int main(void) {
  char line[4000], *statement = NULL;
  size_t length = 0;
  sqlite3_initialize();
  sqlite3_vfs_register(sqlite3_vfs_find("memdb"), 1); // attached databases are in memory too
  start();
  while (fgets(line, sizeof line, stdin)) {
    if (line[0] == '.') {
      printf("closed: %d\n", sqlite3_close(db));
      start();
      continue;
    }
    size_t more = strlen(line);
    statement = realloc(statement, length + more + 1);
    memcpy(statement + length, line, more + 1);
    length += more;
    if (!sqlite3_complete(statement)) continue;
    char *error = NULL;
    int result = sqlite3_exec(db, statement, row, NULL, &error);
    if (result) printf("error %d: %s\n", result, error);
    sqlite3_free(error);
    length = 0;
  }
  printf("changes: %d\n", sqlite3_total_changes(db));
  free(statement);
  return sqlite3_close(db);
}
