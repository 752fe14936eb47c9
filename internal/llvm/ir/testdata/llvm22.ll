; What LLVM 20 to 22 added.
target triple = "x86_64-unknown-linux-gnu"

define void @f(ptr captures(none) %p, ptr captures(address, read_provenance) initializes((0, 4), (8, 12)) %q, ptr dead_on_return %r, i32 noext %i) sanitize_type {
  %c = icmp samesign ult i32 %i, 5
  %a = ptrtoaddr ptr %p to i64
  %s = atomicrmw usub_sat ptr %p, i32 1 seq_cst
  %m = atomicrmw fmaximum ptr %p, float 1.0 seq_cst
  %fc = fptrunc nnan double 1.0 to float
  ret void
}
