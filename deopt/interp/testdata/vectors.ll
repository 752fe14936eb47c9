; Vectors: arithmetic, comparison, select, elements, shuffle, memory, casts, reductions.
@fmt = private constant [5 x i8] c"%ld\0A\00"
@v = global <4 x i32> <i32 1, i32 -2, i32 3, i32 2147483647>
@bits = global <8 x i1> <i1 1, i1 0, i1 1, i1 1, i1 0, i1 0, i1 0, i1 1>
declare i32 @printf(ptr, ...)
declare i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)
declare i32 @llvm.vector.reduce.smin.v4i32(<4 x i32>)
declare i32 @llvm.vector.reduce.xor.v4i32(<4 x i32>)
declare <4 x i32> @llvm.umax.v4i32(<4 x i32>, <4 x i32>)
declare <2 x double> @llvm.fabs.v2f64(<2 x double>)
declare { <4 x i32>, <4 x i1> } @llvm.sadd.with.overflow.v4i32(<4 x i32>, <4 x i32>)
define internal void @show(i32 %v) noinline {
  %w = sext i32 %v to i64
  %n = call i32 (ptr, ...) @printf(ptr @fmt, i64 %w)
  ret void
}
define internal void @all(<4 x i32> %v) noinline {
  %a = extractelement <4 x i32> %v, i32 0
  call void @show(i32 %a)
  %b = extractelement <4 x i32> %v, i64 1
  call void @show(i32 %b)
  %c = extractelement <4 x i32> %v, i32 2
  call void @show(i32 %c)
  %d = extractelement <4 x i32> %v, i32 3
  call void @show(i32 %d)
  ret void
}
define i32 @main() {
  %v = load <4 x i32>, ptr @v
  %s = add <4 x i32> %v, <i32 10, i32 20, i32 30, i32 1>
  call void @all(<4 x i32> %s)
  %m = mul <4 x i32> %v, %s
  call void @all(<4 x i32> %m)
  %sh = ashr <4 x i32> %m, <i32 0, i32 1, i32 2, i32 31>
  call void @all(<4 x i32> %sh)
  %c = icmp slt <4 x i32> %v, %s
  %sel = select <4 x i1> %c, <4 x i32> %v, <4 x i32> zeroinitializer
  call void @all(<4 x i32> %sel)
  %one = select i1 true, <4 x i32> %s, <4 x i32> %v
  call void @all(<4 x i32> %one)
  %ins = insertelement <4 x i32> %v, i32 77, i32 2
  %shuf = shufflevector <4 x i32> %ins, <4 x i32> %s, <4 x i32> <i32 7, i32 2, i32 0, i32 5>
  call void @all(<4 x i32> %shuf)
  %wide = shufflevector <4 x i32> %ins, <4 x i32> %s, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %half = shufflevector <8 x i32> %wide, <8 x i32> undef, <4 x i32> <i32 6, i32 4, i32 2, i32 0>
  call void @all(<4 x i32> %half)
  %p = alloca <4 x i32>
  store <4 x i32> %shuf, ptr %p
  %e = getelementptr i32, ptr %p, i64 3
  %ev = load i32, ptr %e
  call void @show(i32 %ev)
  %b = load <8 x i1>, ptr @bits
  %bi = bitcast <8 x i1> %b to i8
  %bz = zext i8 %bi to i32
  call void @show(i32 %bz)
  %not = xor <8 x i1> %b, <i1 1, i1 1, i1 1, i1 1, i1 1, i1 1, i1 1, i1 1>
  %pb = alloca <8 x i1>
  store <8 x i1> %not, ptr %pb
  %pv = load i8, ptr %pb
  %pz = zext i8 %pv to i32
  call void @show(i32 %pz)
  %as64 = bitcast <4 x i32> %v to <2 x i64>
  %q = extractelement <2 x i64> %as64, i32 0
  %qh = lshr i64 %q, 32
  %qt = trunc i64 %qh to i32
  call void @show(i32 %qt)
  %d = sitofp <4 x i32> %v to <4 x double>
  %d2 = fmul <4 x double> %d, <double 0.5, double 0.25, double 3.0, double 1.0>
  %di = fptosi <4 x double> %d2 to <4 x i32>
  call void @all(<4 x i32> %di)
  %tr = trunc <4 x i32> %m to <4 x i8>
  %sx = sext <4 x i8> %tr to <4 x i32>
  call void @all(<4 x i32> %sx)
  %ra = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %v)
  call void @show(i32 %ra)
  %rm = call i32 @llvm.vector.reduce.smin.v4i32(<4 x i32> %v)
  call void @show(i32 %rm)
  %rx = call i32 @llvm.vector.reduce.xor.v4i32(<4 x i32> %m)
  call void @show(i32 %rx)
  %um = call <4 x i32> @llvm.umax.v4i32(<4 x i32> %v, <4 x i32> %s)
  call void @all(<4 x i32> %um)
  %fa = call <2 x double> @llvm.fabs.v2f64(<2 x double> <double -3.5, double 4.5>)
  %f0 = extractelement <2 x double> %fa, i32 0
  %fi = fptosi double %f0 to i32
  call void @show(i32 %fi)
  %o = call { <4 x i32>, <4 x i1> } @llvm.sadd.with.overflow.v4i32(<4 x i32> %v, <4 x i32> %v)
  %o0 = extractvalue { <4 x i32>, <4 x i1> } %o, 0
  %o1 = extractvalue { <4 x i32>, <4 x i1> } %o, 1
  call void @all(<4 x i32> %o0)
  %oz = zext <4 x i1> %o1 to <4 x i32>
  call void @all(<4 x i32> %oz)
  %fr = freeze <4 x i32> %v
  call void @all(<4 x i32> %fr)
  %gp = getelementptr i32, ptr @v, <4 x i64> <i64 3, i64 2, i64 1, i64 0>
  %g0 = extractelement <4 x ptr> %gp, i32 1
  %gv = load i32, ptr %g0
  call void @show(i32 %gv)
  ret i32 0
}
