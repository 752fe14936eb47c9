; printf and related functions, and the string functions.
@d = private constant [45 x i8] c"[%d] [%5d] [%-5d] [%05d] [%+d] [% d] [%.3d]\0A\00"
@u = private constant [44 x i8] c"[%u] [%x] [%X] [%#x] [%o] [%#o] [%08x] [%c]\00"
@l = private constant [43 x i8] c"[%ld] [%lld] [%lu] [%zu] [%hhd] [%hu] [%p]\00"
@s = private constant [37 x i8] c"[%s] [%10s] [%-10s] [%.2s] [%*s] %%\0A\00"
@f = private constant [53 x i8] c"[%f] [%.2f] [%10.3f] [%-10.1f] [%e] [%.0e] [%g] [%G]\00"
@g = private constant [25 x i8] c"%g %g %g %g %g %#g %.3g\0A\00"
@n = private constant [12 x i8] c"<%.*f> <%%>\00"
@one = private constant [4 x i8] c"%d\0A\00"
@hello = private constant [6 x i8] c"hello\00"
@hell = private constant [5 x i8] c"hell\00"
@num = private constant [12 x i8] c"  -12345xyz\00"
@hex = private constant [6 x i8] c"0xfFz\00"
@huge = private constant [21 x i8] c"99999999999999999999\00"
declare i32 @printf(ptr, ...)
declare i32 @puts(ptr)
declare i32 @putchar(i32)
declare i32 @sprintf(ptr, ptr, ...)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare i64 @strlen(ptr)
declare i32 @strcmp(ptr, ptr)
declare i32 @strncmp(ptr, ptr, i64)
declare ptr @strcpy(ptr, ptr)
declare ptr @strncpy(ptr, ptr, i64)
declare ptr @strcat(ptr, ptr)
declare ptr @strchr(ptr, i32)
declare ptr @strrchr(ptr, i32)
declare ptr @strdup(ptr)
declare i32 @memcmp(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @atoi(ptr)
declare i64 @atol(ptr)
declare i64 @strtol(ptr, ptr, i32)
declare i32 @abs(i32)
declare i64 @labs(i64)
declare void @exit(i32)
define internal void @show(i64 %v) {
  %t = trunc i64 %v to i32
  %n = call i32 (ptr, ...) @printf(ptr @one, i32 %t)
  ret void
}
define internal void @sign(i32 %v) {
  %neg = icmp slt i32 %v, 0
  %pos = icmp sgt i32 %v, 0
  %a = select i1 %neg, i64 -1, i64 0
  %b = select i1 %pos, i64 1, i64 %a
  call void @show(i64 %b)
  ret void
}
define i32 @main() {
  %a = call i32 (ptr, ...) @printf(ptr @d, i32 42, i32 -42, i32 42, i32 -42, i32 42, i32 42, i32 7)
  %b = call i32 (ptr, ...) @printf(ptr @u, i32 -1, i32 48879, i32 48879, i32 48879, i32 8, i32 8, i32 48879, i32 65)
  %nl = call i32 @putchar(i32 10)
  %c = call i32 (ptr, ...) @printf(ptr @l, i64 -5, i64 -9223372036854775808, i64 -1, i64 99, i32 300, i32 70000, ptr null)
  %nl2 = call i32 @putchar(i32 10)
  %e = call i32 (ptr, ...) @printf(ptr @s, ptr @hello, ptr @hello, ptr @hello, ptr @hello, i32 -8, ptr @hello)
  %f = call i32 (ptr, ...) @printf(ptr @f, double 2.5, double -0.005, double 3.14159, double 2.25, double 123456.789, double 5.5, double 0.0001, double 1.0e-10)
  %nl3 = call i32 @putchar(i32 10)
  %g = call i32 (ptr, ...) @printf(ptr @g, double 100000.0, double 1000000.0, double 0x7FF0000000000000, double 0x7FF8000000000000, double -0.0, double 1.0, double 1234.5)
  %h = call i32 (ptr, ...) @printf(ptr @n, i32 3, double 1.0)
  call void @show(i64 0)
  %ra = sext i32 %a to i64
  call void @show(i64 %ra)
  %buf = alloca [64 x i8]
  %sp = call i32 (ptr, ptr, ...) @sprintf(ptr %buf, ptr @one, i32 -77)
  %pu = call i32 @puts(ptr %buf)
  %sn = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %buf, i64 4, ptr @one, i32 123456)
  %sn1 = sext i32 %sn to i64
  call void @show(i64 %sn1)
  %pu2 = call i32 @puts(ptr %buf)
  %len = call i64 @strlen(ptr @hello)
  call void @show(i64 %len)
  %cmp = call i32 @strcmp(ptr @hello, ptr @hell)
  call void @sign(i32 %cmp)
  %cmp2 = call i32 @strcmp(ptr @hell, ptr @hello)
  call void @sign(i32 %cmp2)
  %cmp3 = call i32 @strncmp(ptr @hello, ptr @hell, i64 4)
  call void @sign(i32 %cmp3)
  %mc = call i32 @memcmp(ptr @hello, ptr @num, i64 3)
  call void @sign(i32 %mc)
  %cp = call ptr @strcpy(ptr %buf, ptr @hello)
  %ct = call ptr @strcat(ptr %buf, ptr @hell)
  %pu3 = call i32 @puts(ptr %buf)
  %nc = call ptr @strncpy(ptr %buf, ptr @hell, i64 8)
  %pu4 = call i32 @puts(ptr %buf)
  %ch = call ptr @strchr(ptr @hello, i32 108)
  %pu5 = call i32 @puts(ptr %ch)
  %cr = call ptr @strrchr(ptr @hello, i32 108)
  %pu6 = call i32 @puts(ptr %cr)
  %cn = call ptr @strchr(ptr @hello, i32 122)
  %isnull = icmp eq ptr %cn, null
  %nz = zext i1 %isnull to i64
  call void @show(i64 %nz)
  %dup = call ptr @strdup(ptr @hello)
  %ms = call ptr @memset(ptr %dup, i32 45, i64 2)
  %pu7 = call i32 @puts(ptr %dup)
  %i = call i32 @atoi(ptr @num)
  %i1 = sext i32 %i to i64
  call void @show(i64 %i1)
  %end = alloca ptr
  %sl = call i64 @strtol(ptr @hex, ptr %end, i32 0)
  call void @show(i64 %sl)
  %rest = load ptr, ptr %end
  %pu8 = call i32 @puts(ptr %rest)
  %hl = call i64 @strtol(ptr @huge, ptr null, i32 10)
  %hs = lshr i64 %hl, 40
  call void @show(i64 %hs)
  %ab = call i32 @abs(i32 -9)
  %ab1 = sext i32 %ab to i64
  call void @show(i64 %ab1)
  %lb = call i64 @labs(i64 -10)
  call void @show(i64 %lb)
  call void @exit(i32 300)
  unreachable
}
