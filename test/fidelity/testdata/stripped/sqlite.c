// Goes through much of SQLite's code, the same way each time, with a database in memory and functions of its own that SQLite
// calls back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sqlite3.h"

static int rows;

static int row(void *unused, int columns, char **values, char **names) {
  (void)unused;
  (void)names;
  for (int i = 0; i < columns; i++) rows += values[i] ? (int)strlen(values[i]) : 1;
  return 0;
}

static void twice(sqlite3_context *context, int n, sqlite3_value **values) {
  (void)n;
  sqlite3_result_int64(context, 2 * sqlite3_value_int64(values[0]));
}

static void step(sqlite3_context *context, int n, sqlite3_value **values) {
  (void)n;
  sqlite3_int64 *sum = sqlite3_aggregate_context(context, sizeof *sum);
  if (sum) *sum = *sum * 31 + sqlite3_value_int64(values[0]);
}

static void final(sqlite3_context *context) {
  sqlite3_int64 *sum = sqlite3_aggregate_context(context, 0);
  sqlite3_result_int64(context, sum ? *sum : 0);
}

static int backwards(void *unused, int n, const void *a, int m, const void *b) {
  (void)unused;
  int c = memcmp(a, b, n < m ? n : m);
  return c ? -c : m - n;
}

static void run(sqlite3 *db, const char *sql) {
  char *message = NULL;
  if (sqlite3_exec(db, sql, row, NULL, &message) != SQLITE_OK) {
    printf("%s: %s\n", sql, message);
    exit(1);
  }
}

int main(void) {
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
  sqlite3_create_function(db, "twice", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, twice, NULL, NULL);
  sqlite3_create_function(db, "mixed", 1, SQLITE_UTF8, NULL, NULL, step, final);
  sqlite3_create_collation(db, "backwards", SQLITE_UTF8, NULL, backwards);
  run(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT COLLATE backwards, c REAL, d INT DEFAULT 4);"
          "CREATE TABLE log(what TEXT, n INT);"
          "CREATE INDEX tb ON t(b, c);"
          "CREATE TRIGGER told AFTER UPDATE ON t BEGIN INSERT INTO log VALUES(new.b, twice(new.a)); END;"
          "CREATE VIEW v AS SELECT a, b, count(*) OVER (ORDER BY c ROWS 3 PRECEDING) AS n FROM t;");
  run(db, "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 200) "
          "INSERT INTO t(a, b, c) SELECT i, printf('%c%05d', 97 + i % 23, i * 7919 % 10007), i / 7.0 FROM k;");
  for (int i = 0; i < 3; i++) {
    run(db, "SELECT t.b, u.c, twice(t.a) FROM t JOIN t AS u ON u.a = t.d + t.a % 9 WHERE t.b LIKE 'a%' ORDER BY u.c DESC, t.b;");
    run(db, "SELECT substr(b, 1, 1) AS g, mixed(a), group_concat(b, ';'), avg(c) FROM t GROUP BY g HAVING count(*) > 3 ORDER BY 2;");
    run(db, "UPDATE t SET c = c + 1 WHERE a % 5 = 0; SELECT * FROM v WHERE n > 2 ORDER BY b LIMIT 20;");
    run(db, "SELECT what, sum(n) FROM log WHERE what IN (SELECT b FROM t WHERE c > 3) GROUP BY what UNION SELECT b, a FROM t WHERE a < 9;");
    run(db, "BEGIN; DELETE FROM t WHERE a % 11 = 3; SAVEPOINT s; UPDATE t SET b = upper(b); ROLLBACK TO s; COMMIT;");
  }
  run(db, "VACUUM; PRAGMA integrity_check; REINDEX; ANALYZE; DROP INDEX tb; ALTER TABLE t ADD COLUMN e DEFAULT 'x';");
  sqlite3_close(db);
  printf("%d\n", rows);
}
