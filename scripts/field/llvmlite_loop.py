# llvmlite, through MCJIT: a function that does not return.
import ctypes

import llvmlite.binding as llvm

llvm.initialize()
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
module = llvm.parse_assembly("""
define i64 @spin(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = mul i64 %i, %n
  %next = add i64 %x, 1
  %on = icmp ne i64 %n, 0
  br i1 %on, label %loop, label %exit
exit:
  ret i64 %i
}

define i64 @outer(i64 %n) {
  %r = call i64 @spin(i64 %n)
  %s = add i64 %r, 1
  ret i64 %s
}
""")
module.verify()
machine = llvm.Target.from_default_triple().create_target_machine()
with llvm.create_mcjit_compiler(module, machine) as engine:
    engine.finalize_object()
    outer = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("outer"))
    print("ready", flush=True)
    outer(3)
