; Debug information in the two forms: intrinsics until LLVM 18, records since.
target triple = "x86_64-pc-linux-gnu"

@g = global i32 0, align 4, !dbg !12

declare void @other()
declare void @llvm.dbg.value(metadata, metadata, metadata)
declare void @llvm.dbg.declare(metadata, metadata, metadata)
declare double @llvm.experimental.constrained.fadd.f64(double, double, metadata, metadata)

define i32 @f(i32 %x) !dbg !5 !prof !15 {
  %a = alloca i32, align 4
  call void @llvm.dbg.declare(metadata ptr %a, metadata !9, metadata !DIExpression()), !dbg !10
  call void @llvm.dbg.value(metadata i32 %x, metadata !9, metadata !DIExpression(DW_OP_plus_uconst, 1, DW_OP_stack_value)), !dbg !10
  call void @llvm.dbg.value(metadata !DIArgList(i32 %x, i32 0), metadata !9, metadata !DIExpression(DW_OP_LLVM_arg, 0, DW_OP_LLVM_arg, 1, DW_OP_plus, DW_OP_stack_value)), !dbg !10
  store i32 %x, ptr %a, align 4, !dbg !10, !tbaa !13
  %y = load i32, ptr %a, align 4, !dbg !11, !range !16
  %d = call double @llvm.experimental.constrained.fadd.f64(double 1.0, double 2.0, metadata !"round.dynamic", metadata !"fpexcept.strict")
  %c = icmp eq i32 %y, 0, !dbg !11
  br i1 %c, label %t, label %e, !dbg !11, !prof !17
t:
  ret i32 %y, !dbg !11
e:
  ret i32 0, !dbg !DILocation(line: 3, column: 4, scope: !5)
}

!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!3, !4}
!1 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, producer: "a ) } \22 b", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)
!2 = !DIFile(filename: "f.c", directory: "/tmp")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !{i32 7, !"Dwarf Version", i32 4}
!5 = distinct !DISubprogram(name: "f", scope: !2, file: !2, line: 1, type: !6, scopeLine: 1, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1, retainedNodes: !8)
!6 = !DISubroutineType(types: !7)
!7 = !{!18, !18}
!8 = !{!9}
!9 = !DILocalVariable(name: "x", arg: 1, scope: !5, file: !2, line: 1, type: !18)
!10 = !DILocation(line: 1, column: 2, scope: !5)
!11 = !DILocation(line: 2, column: 2, scope: !5)
!12 = !DIGlobalVariableExpression(var: !19, expr: !DIExpression())
!13 = !{!14, !14, i64 0}
!14 = !{!"int", !20, i64 0}
!15 = !{!"function_entry_count", i64 10}
!16 = !{i32 0, i32 5}
!17 = !{!"branch_weights", i32 1, i32 2}
!18 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!19 = distinct !DIGlobalVariable(name: "g", scope: !1, file: !2, line: 1, type: !18, isLocal: false, isDefinition: true)
!20 = !{!"char"}
