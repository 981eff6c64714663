;; kernel row_sum(x: f32[n, 64], out y: f32[n]) given n in [1, 4096], n mod 8 = 0
;;   for i < n grid
;;     %2 = reduce sum for j < 64 vector 16
;;       %0 = load x[64*i + j]
;;       %1 = exp %0
;;       yield %1
;;     store y[i], %2
define internal void @row_sum.body(ptr noalias nocapture readonly %x, ptr noalias nocapture %y, i64 %n, i64 %begin, i64 %end, ptr noalias nocapture %scratch, ptr noalias nocapture %error) nounwind {
entry:
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %then, label %join
then:
  br label %grid.loop
grid.loop:
  %grid = phi i64 [ %begin, %then ], [ %grid.next, %j.done ]
  br label %j.loop
j.loop:
  %j = phi i64 [ 0, %grid.loop ], [ %j.next, %j.loop ]
  %acc = phi <16 x float> [ splat (float 0.0), %grid.loop ], [ %sum, %j.loop ]
  %index = mul i64 64, %grid
  %at = getelementptr float, ptr %x, i64 %index
  %at.1 = getelementptr float, ptr %at, i64 %j
  %at.2 = getelementptr float, ptr %at.1, i64 512
  call void @llvm.prefetch.p0(ptr %at.2, i32 0, i32 3, i32 1)
  %load = load <16 x float>, ptr %at.1, align 4
  ; exp
  %olt = fcmp olt <16 x float> %load, splat (float -104.0)
  %clamped = select <16 x i1> %olt, <16 x float> splat (float -104.0), <16 x float> %load
  %ogt = fcmp ogt <16 x float> %clamped, splat (float 89.0)
  %clamped.1 = select <16 x i1> %ogt, <16 x float> splat (float 89.0), <16 x float> %clamped
  %shifted = call <16 x float> @llvm.fma.v16f32(<16 x float> %clamped.1, <16 x float> splat (float 0x3FF7154760000000), <16 x float> splat (float 0x4168000000000000))
  %n.1 = fsub <16 x float> %shifted, splat (float 0x4168000000000000)
  %r = call <16 x float> @llvm.fma.v16f32(<16 x float> %n.1, <16 x float> splat (float 0xBFE62E4000000000), <16 x float> %clamped.1)
  %r.1 = call <16 x float> @llvm.fma.v16f32(<16 x float> %n.1, <16 x float> splat (float 0xBEB7F7D1C0000000), <16 x float> %r)
  %p = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0x3F56A4DA60000000), <16 x float> %r.1, <16 x float> splat (float 0x3F8123E5A0000000))
  %p.1 = call <16 x float> @llvm.fma.v16f32(<16 x float> %p, <16 x float> %r.1, <16 x float> splat (float 0x3FA5558B80000000))
  %p.2 = call <16 x float> @llvm.fma.v16f32(<16 x float> %p.1, <16 x float> %r.1, <16 x float> splat (float 0x3FC55548C0000000))
  %p.3 = call <16 x float> @llvm.fma.v16f32(<16 x float> %p.2, <16 x float> %r.1, <16 x float> splat (float 0x3FDFFFFFC0000000))
  %r2 = fmul <16 x float> %r.1, %r.1
  %t = call <16 x float> @llvm.fma.v16f32(<16 x float> %r2, <16 x float> %p.3, <16 x float> %r.1)
  %p.4 = fadd <16 x float> %t, splat (float 1.0)
  %scaled = call <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float> %p.4, <16 x float> %n.1, <16 x float> zeroinitializer, i16 -1, i32 4)
  %sum = fadd <16 x float> %acc, %scaled
  %j.next = add nsw i64 %j, 16
  %more = icmp slt i64 %j.next, 64
  br i1 %more, label %j.loop, label %j.done
j.done:
  %part = shufflevector <16 x float> %sum, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %part.1 = shufflevector <16 x float> %sum, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %sum.1 = fadd <8 x float> %part, %part.1
  %part.2 = shufflevector <8 x float> %sum.1, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %part.3 = shufflevector <8 x float> %sum.1, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %sum.2 = fadd <4 x float> %part.2, %part.3
  %part.4 = shufflevector <4 x float> %sum.2, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %part.5 = shufflevector <4 x float> %sum.2, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %sum.3 = fadd <2 x float> %part.4, %part.5
  %lane = extractelement <2 x float> %sum.3, i64 0
  %lane.1 = extractelement <2 x float> %sum.3, i64 1
  %sum.4 = fadd float %lane, %lane.1
  %at.3 = getelementptr float, ptr %y, i64 %grid
  store float %sum.4, ptr %at.3, align 4
  %grid.next = add nsw i64 %grid, 1
  %more.1 = icmp slt i64 %grid.next, %end
  br i1 %more.1, label %grid.loop, label %grid.done
grid.done:
  br label %join
join:
  ret void
}

define void @row_sum(ptr %buffers, ptr %sizes, i64 %begin, i64 %end, ptr %scratch, ptr %error) nounwind {
entry:
  %item = load ptr, ptr %buffers, align 8
  %at = getelementptr ptr, ptr %buffers, i64 1
  %item.1 = load ptr, ptr %at, align 8
  %item.2 = load i64, ptr %sizes, align 8
  call void @row_sum.body(ptr %item, ptr %item.1, i64 %item.2, i64 %begin, i64 %end, ptr %scratch, ptr %error)
  ret void
}

declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float>, <16 x float>, <16 x float>, i16, i32)
