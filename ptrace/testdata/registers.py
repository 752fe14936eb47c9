# Gives registers values and writes a core. Given are:
#   values  pairs of gdb's expression for a register and the number that it is set to
#   core    the path of the core
import gdb

for register, value in values:
    gdb.execute("set %s = %s" % (register, value))
print(gdb.execute("generate-core-file " + core, to_string=True))
