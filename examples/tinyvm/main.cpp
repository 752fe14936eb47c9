// tinyvm [flags] PROGRAM.tvm
#include "vm.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace tinyvm;

static const char usage[] =
    "usage: tinyvm [flags] PROGRAM.tvm\n"
    "  --interpret     run in the plain interpreter alone\n"
    "  --jit N         compile a method once it was interpreted N times (3)\n"
    "  --opt 0|2       let LLVM's passes at -O2 run, or none but that which makes statepoints (2)\n"
    "  --fuel N        how many backward jumps and calls the program may make (100000)\n"
    "  --log FILE      interpret, and write each arrival at a position as a line of JSON\n"
    "  --log-exits F   write the frames that are rebuilt at each exit of compiled code and each of its calls, in the same form\n"
    "  --backtrace F   write the whole stack of both tiers at each exit and call of compiled code, a line for each activation, innermost first\n"
    "  --log-limit N   at most so many lines (100000)\n"
    "  --dump DIR      write the IR of each compiled method, after the passes\n"
    "  --exits         say at the end, on stderr, how often compiled code was left\n"
    "  --entries       compiled code has a record at its entry too, from which all of it can be held against the interpreter\n"
    "  --serve         go on in frames of another process, by reframe's protocol on standard input and output (reframe resume --with)\n"
    "  --stand N       print \"ready\" at the N-th exit of compiled code and wait there, for ten minutes at most\n"
    "  --fault NAME    compile wrong: constant, guard, swap, field, position, mode, stack, class, stale, object,\n"
    "                  history, barrier, monitor, early\n"
    "  --right-entries the fault spares the records of --entries\n";

int main(int argc, char **argv) {
  const char *file = nullptr;
  bool served = false;
  for (int i = 1; i < argc; i++) {
    std::string flag = argv[i];
    auto value = [&] {
      if (i + 1 >= argc) fputs(usage, stderr), exit(64);
      return argv[++i];
    };
    if (flag == "--interpret") options.interpret = true;
    else if (flag == "--jit") options.jit = atoi(value());
    else if (flag == "--opt") options.opt = atoi(value());
    else if (flag == "--fuel") tinyvm_fuel = atol(value());
    else if (flag == "--entries") options.entries = true;
    else if (flag == "--serve") served = true;
    else if (flag == "--log") options.log = value(), options.interpret = true;
    else if (flag == "--log-exits") options.log_exits = value();
    else if (flag == "--backtrace") options.backtrace = value();
    else if (flag == "--log-limit") options.log_limit = atol(value());
    else if (flag == "--dump") options.dump = value();
    else if (flag == "--exits") options.exits = true;
    else if (flag == "--stand") options.stand = atol(value());
    else if (flag == "--right-entries") options.right_entries = true;
    else if (flag == "--fault") options.fault = value();
    else if (flag[0] == '-' || file) fputs(usage, stderr), exit(64);
    else file = argv[i];
  }
  if (!file) fputs(usage, stderr), exit(64);
  parse(file);
  if (served) serve();
  if (!options.interpret) start_jit();
  Method *main = nullptr;
  for (Method *m : methods)
    if (!strcmp(m->name, "Main.main")) main = m;
  Value v = call(main, 0, nullptr);
  if (tinyvm_stopped) printf("stopped: %s\n", tinyvm_why);
  else print(v);
  fflush(stdout);
  if (options.exits) fprintf(stderr, "%ld exits\n", exits_taken);
  return tinyvm_stopped ? 3 : 0;
}
