# Prints for each address of the file $ADDRS gdb's data about its place in the source, as JSON: innermost first
# [function, file, line]. Of a function that was inlined, gdb's symbol has the line of its call.
import gdb, json, os

for line in open(os.environ["ADDRS"]):
    pc = int(line, 16)
    sal = gdb.find_pc_line(pc)
    file, at = (sal.symtab.filename, sal.line) if sal.symtab else ("", 0)
    places, block = [], gdb.block_for_pc(pc)
    while block and not block.is_static and not block.is_global:
        if block.function:
            places.append([block.function.linkage_name, file, at])
            if block.function.symtab:
                file, at = block.function.symtab.filename, block.function.line
        block = block.superblock
    if not places and file:
        places.append(["", file, at])
    print(json.dumps(places))
