"""Adds stackmaps with all live values to the code that numba compiles for an unchanged program (Debian: python3-numba; reframe on the PATH).

    python3 numba_sites.py DIR PROGRAM.py [ARGUMENT...]

runs PROGRAM and writes into DIR, for --ir, the IR of each function that it compiles, as the code generator gets it: optimized, and with a site in each block
and behind each call. A function that cache=True has kept from another run has no IR and no sites.
"""
import glob
import os
import runpy
import subprocess
import sys

import llvmlite.binding as llvm
from numba.core.codegen import JITCPUCodegen

directory = sys.argv[1]
os.makedirs(directory, exist_ok=True)
for old in glob.glob(glob.escape(directory) + "/[0-9]*.ll"):
    os.remove(old)  # it has the addresses of another run
add_module = JITCPUCodegen._add_module  # hands the module to MCJIT when all passes over it are done
modules = 0


def sites(codegen, module):
    global modules
    name = next((f.name for f in module.functions if not f.is_declaration), "")
    if not name.startswith("_ZN") or name.startswith(("_ZN5numba", "_ZN13_3cdynamic")):
        return add_module(codegen, module)  # numba's own: what a program calls of it is linked into the program's modules too
    modules += 1
    path = "%s/%d.ll" % (directory, modules)
    # Unique ids distinguish the records of one module from those of all others.
    words = ["reframe", "instrument", "/dev/stdin", "-o", path, "--force", "--at", "blocks,calls", "--id", str(modules * 1000000)]
    for most in [], ["--most", "16"], ["--most", "8"]:
        written = subprocess.run(words + most, input=str(module), text=True, capture_output=True)
        if written.returncode != 0:
            print(name, written.stderr, file=sys.stderr)
            return add_module(codegen, module)
        with open(path) as f:
            probed = llvm.parse_assembly(f.read())
        if compiles(codegen, probed):
            # numba still links the plain module into others, and shows it by inspect_llvm; the instrumented one has the same
            # names.
            return add_module(codegen, probed)
    os.remove(path)
    return add_module(codegen, module)


def compiles(codegen, module):
    """If many values are live at once, the code generator may run out of registers and end the process, so a child process tries it."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it says so
        codegen._tm.emit_object(module)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


JITCPUCodegen._add_module = sites
sys.argv = sys.argv[2:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
