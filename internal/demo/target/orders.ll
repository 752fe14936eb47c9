; ModuleID = 'Shop.total#1'
source_filename = "Shop.total#1"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@tinyvm_fuel = external local_unnamed_addr global i64

declare i64 @llvm.experimental.deoptimize.i64(...)

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare { i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32) #0

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare { i32, i1 } @llvm.smul.with.overflow.i32(i32, i32) #0

define i64 @"Shop.total#1"(i64 %depth, ptr nocapture %args) local_unnamed_addr #1 gc "statepoint-example" {
entry:
  %local0 = load i64, ptr %args, align 4
  %is = icmp ugt i64 %local0, -281474976710657
  br i1 %is, label %on, label %exit

exit:                                             ; preds = %entry
  %safepoint_token = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 9, i32 0, ptr elementtype(void ()) @__llvm_deoptimize, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 4294967296, i64 17592186044496, i32 4, i64 30064771074, i64 %depth, i64 8606711808, i64 %local0, i64 8589934593, i32 0, i64 8589934594, double 5.000000e-01) ]
  unreachable

on:                                               ; preds = %entry
  %int = trunc i64 %local0 to i32
  %room = icmp slt i64 %depth, 199
  %smax = tail call i32 @llvm.smax.i32(i32 %int, i32 1)
  %0 = add nsw i32 %smax, -1
  br i1 %room, label %on.3.lr.ph, label %exit.3

on.3.lr.ph:                                       ; preds = %on
  %tinyvm_fuel.promoted = load i64, ptr @tinyvm_fuel, align 8
  br label %on.3

exit.1:                                           ; preds = %on.8
  %safepoint_token206 = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 10, i32 0, ptr elementtype(void ()) @__llvm_deoptimize, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 4294967296, i64 17592186044496, i32 8, i64 30064771074, i64 %depth, i64 8589934592, i32 %int, i64 8589934593, i32 21474837, i64 8589934594, double %add, i64 12935233536, i32 0, i64 12935233537, i32 0, i64 12884901890, i32 21474837, i64 12884901891, i32 100, i64 21474836480, i64 17592186044416, i32 3, i64 25803358224, ptr addrspace(1) null, i64 25803358232, ptr addrspace(1) null, i64 25803358240, ptr addrspace(1) null) ]
  unreachable

on.1:                                             ; preds = %on.8
  %mul = mul i32 %both.42, 100
  %both.11 = mul nuw nsw i32 %both.42, 10
  br i1 %room, label %on.3, label %exit.3

exit.3:                                           ; preds = %on.1, %on
  %mul.lcssa = phi i32 [ 0, %on ], [ %mul, %on.1 ]
  %both.11.lcssa = phi i32 [ 0, %on ], [ %both.11, %on.1 ]
  %safepoint_token207 = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 12, i32 0, ptr elementtype(void ()) @__llvm_deoptimize, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 4294967296, i64 17592186044496, i32 18, i64 30064771074, i64 %depth, i64 8589934592, i32 %int, i64 8589934593, i32 0, i64 8589934594, double 5.000000e-01, i64 12935233536, i32 0, i64 21474836480, i64 17592186044416, i32 3, i64 25769803792, i32 %mul.lcssa, i64 25769803800, i32 %both.11.lcssa, i64 25769803808, i32 50) ]
  unreachable

on.3:                                             ; preds = %on.3.lr.ph, %on.1
  %both.11132 = phi i32 [ 0, %on.3.lr.ph ], [ %both.11, %on.1 ]
  %mul131 = phi i32 [ 0, %on.3.lr.ph ], [ %mul, %on.1 ]
  %less.12930130 = phi i64 [ %tinyvm_fuel.promoted, %on.3.lr.ph ], [ %less.1, %on.1 ]
  %local131129 = phi i32 [ 0, %on.3.lr.ph ], [ %both.42, %on.1 ]
  %local232128 = phi double [ 5.000000e-01, %on.3.lr.ph ], [ %add, %on.1 ]
  %some = icmp sgt i64 %less.12930130, 0
  br i1 %some, label %on.4, label %exit.4

exit.4:                                           ; preds = %on.3
  %safepoint_token208 = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 13, i32 0, ptr elementtype(void ()) @__llvm_deoptimize, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 4294967296, i64 17592186044496, i32 18, i64 30064771074, i64 %depth, i64 8589934592, i32 %int, i64 8589934593, i32 %local131129, i64 8589934594, double %local232128, i64 12935233536, i32 0, i64 21474836480, i64 17592186044416, i32 3, i64 25769803792, i32 %mul131, i64 25769803800, i32 %both.11132, i64 25769803808, i32 50) ]
  unreachable

on.4:                                             ; preds = %on.3
  %less = add nsw i64 %less.12930130, -1
  store i64 %less, ptr @tinyvm_fuel, align 8
  %both.2 = tail call { i32, i1 } @llvm.smul.with.overflow.i32(i32 %mul131, i32 %both.11132)
  %over.2 = extractvalue { i32, i1 } %both.2, 1
  br i1 %over.2, label %exit.5, label %on.5

exit.5:                                           ; preds = %on.4
  %safepoint_token209 = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 14, i32 0, ptr elementtype(void ()) @__llvm_deoptimize, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 4294967298, i64 17592186044496, i32 18, i64 30064771074, i64 %depth, i64 8589934592, i32 %int, i64 8589934593, i32 %local131129, i64 8589934594, double %local232128, i64 4294967296, i64 17592186044512, i32 4, i64 8640266240, i32 0, i64 12884901888, i32 %mul131, i64 12884901889, i32 %both.11132, i64 21474836480, i64 17592186044416, i32 3, i64 25769803792, i32 %mul131, i64 25769803800, i32 %both.11132, i64 25769803808, i32 50) ]
  unreachable

on.5:                                             ; preds = %on.4
  %mul.2 = extractvalue { i32, i1 } %both.2, 0
  %both.3 = tail call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %mul.2, i32 -50)
  %over.3 = extractvalue { i32, i1 } %both.3, 1
  br i1 %over.3, label %exit.6, label %on.6

exit.6:                                           ; preds = %on.5
  %safepoint_token210 = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 15, i32 0, ptr elementtype(void ()) @__llvm_deoptimize, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 4294967298, i64 17592186044496, i32 18, i64 30064771074, i64 %depth, i64 8589934592, i32 %int, i64 8589934593, i32 %local131129, i64 8589934594, double %local232128, i64 4294967296, i64 17592186044512, i32 7, i64 8657043456, i64 0, i64 12884901888, i32 %mul.2, i64 12884901889, i32 50) ]
  unreachable

on.6:                                             ; preds = %on.5
  %sub = extractvalue { i32, i1 } %both.3, 0
  %double = sitofp i32 %sub to double
  %add = fadd double %local232128, %double
  %both.42 = add nuw nsw i32 %local131129, 1
  %exitcond.not = icmp eq i32 %local131129, %0
  br i1 %exitcond.not, label %join.1, label %taken

taken:                                            ; preds = %on.6
  %some.1.not = icmp eq i64 %less.12930130, 1
  br i1 %some.1.not, label %exit.8, label %on.8

exit.8:                                           ; preds = %taken
  %safepoint_token211 = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 17, i32 0, ptr elementtype(void ()) @__llvm_deoptimize, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 4294967296, i64 17592186044496, i32 29, i64 30064771074, i64 %depth, i64 8589934592, i32 %int, i64 8589934593, i32 %both.42, i64 8589934594, double %add, i64 12884901888, i32 1) ]
  unreachable

on.8:                                             ; preds = %taken
  %less.1 = add nsw i64 %less.12930130, -2
  store i64 %less.1, ptr @tinyvm_fuel, align 8
  %exitcond65 = icmp eq i32 %both.42, 21474837
  br i1 %exitcond65, label %exit.1, label %on.1

join.1:                                           ; preds = %on.6
  %nan = fcmp uno double %add, 0.000000e+00
  %bits = bitcast double %add to i64
  %1 = add i64 %bits, 281474976710656
  %box = select i1 %nan, i64 9221401712017801216, i64 %1
  ret i64 %box
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smax.i32(i32, i32) #0

declare void @__tmp_use(...)

declare void @__llvm_deoptimize()

declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)

attributes #0 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #1 = { "frame-pointer"="none" }
