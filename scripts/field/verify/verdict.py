"""verdict.py NAME BINARY FILE: one row of the table of scripts/field-verify.sh, the result of `reframe verify --json -o FILE`, and the reasons below it."""
import json
import sys

name, binary, path = sys.argv[1:]
try:
    summary = json.loads(open(path).read().splitlines()[-1])
    total = summary["same"] + summary["different"] + summary["not_comparable"]
except (OSError, IndexError, KeyError, ValueError):
    print("%-28s %-7s it was not verified" % (name, binary), flush=True)
    sys.exit()
share = "%5.1f %%" % (100 * (total - summary["not_comparable"]) / total) if total else ""
print("%-28s %-7s %7d %7d %9d %14d %s" % (name, binary, total, summary["same"], summary["different"], summary["not_comparable"], share), flush=True)
for why, n in sorted(summary["reasons"].items(), key=lambda r: -r[1])[:8]:
    why = " ".join(why.split())
    print("    %4d  %s" % (n, why if len(why) < 170 else why[:80] + " ... " + why[-85:]), flush=True)
