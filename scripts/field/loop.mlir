// MLIR, by mlir-cpu-runner: a loop that does not end.
llvm.func @puts(!llvm.ptr<i8>) -> i32
llvm.func @fflush(!llvm.ptr<i8>) -> i32
llvm.mlir.global internal constant @text("ready\00")

llvm.func @spin(%n: i64) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  llvm.br ^loop(%zero : i64)
^loop(%i: i64):
  %x = llvm.mul %i, %n : i64
  %next = llvm.add %x, %one : i64
  %on = llvm.icmp "ne" %n, %zero : i64
  llvm.cond_br %on, ^loop(%next : i64), ^exit
^exit:
  llvm.return %i : i64
}

llvm.func @main() -> i64 {
  %at = llvm.mlir.addressof @text : !llvm.ptr<array<6 x i8>>
  %p = llvm.bitcast %at : !llvm.ptr<array<6 x i8>> to !llvm.ptr<i8>
  %none = llvm.mlir.null : !llvm.ptr<i8>
  llvm.call @puts(%p) : (!llvm.ptr<i8>) -> i32
  llvm.call @fflush(%none) : (!llvm.ptr<i8>) -> i32
  %three = llvm.mlir.constant(3 : i64) : i64
  %r = llvm.call @spin(%three) : (i64) -> i64
  llvm.return %r : i64
}
