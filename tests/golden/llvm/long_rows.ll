;; kernel long_rows(x: f32[8, 65536], out y: f32[8])
;;   for i < 8 grid
;;     %1 = reduce max for j < 65536 vector 32
;;       %0 = load x[65536*i + j]
;;       yield %0
;;     store y[i], %1
define internal void @long_rows.body(ptr noalias nocapture readonly %x, ptr noalias nocapture %y, i64 %begin, i64 %end, ptr noalias nocapture %scratch, ptr noalias nocapture %error) nounwind {
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
  %acc = phi <32 x float> [ splat (float 0xFFF0000000000000), %grid.loop ], [ %max, %j.loop ]
  %index = mul i64 65536, %grid
  %at = getelementptr float, ptr %x, i64 %index
  %at.1 = getelementptr float, ptr %at, i64 %j
  %at.2 = getelementptr float, ptr %at.1, i64 1024
  call void @llvm.prefetch.p0(ptr %at.2, i32 0, i32 3, i32 1)
  %at.3 = getelementptr i8, ptr %at.2, i64 64
  call void @llvm.prefetch.p0(ptr %at.3, i32 0, i32 3, i32 1)
  %load = load <32 x float>, ptr %at.1, align 4
  %part = shufflevector <32 x float> %acc, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %part.1 = shufflevector <32 x float> %load, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %range = call <16 x float> @llvm.x86.avx512.mask.range.ps.512(<16 x float> %part, <16 x float> %part.1, i32 5, <16 x float> zeroinitializer, i16 -1, i32 4)
  %part.2 = shufflevector <32 x float> %acc, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %part.3 = shufflevector <32 x float> %load, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %range.1 = call <16 x float> @llvm.x86.avx512.mask.range.ps.512(<16 x float> %part.2, <16 x float> %part.3, i32 5, <16 x float> zeroinitializer, i16 -1, i32 4)
  %joined = shufflevector <16 x float> %range, <16 x float> %range.1, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %uno = fcmp uno <32 x float> %acc, %load
  %max = select <32 x i1> %uno, <32 x float> splat (float 0x7FF8000000000000), <32 x float> %joined
  %j.next = add nsw i64 %j, 32
  %more = icmp slt i64 %j.next, 65536
  br i1 %more, label %j.loop, label %j.done
j.done:
  %part.4 = shufflevector <32 x float> %max, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %part.5 = shufflevector <32 x float> %max, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %range.2 = call <16 x float> @llvm.x86.avx512.mask.range.ps.512(<16 x float> %part.4, <16 x float> %part.5, i32 5, <16 x float> zeroinitializer, i16 -1, i32 4)
  %uno.1 = fcmp uno <16 x float> %part.4, %part.5
  %max.1 = select <16 x i1> %uno.1, <16 x float> splat (float 0x7FF8000000000000), <16 x float> %range.2
  %part.6 = shufflevector <16 x float> %max.1, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %part.7 = shufflevector <16 x float> %max.1, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %range.3 = call <8 x float> @llvm.x86.avx512.mask.range.ps.256(<8 x float> %part.6, <8 x float> %part.7, i32 5, <8 x float> zeroinitializer, i8 -1)
  %uno.2 = fcmp uno <8 x float> %part.6, %part.7
  %max.2 = select <8 x i1> %uno.2, <8 x float> splat (float 0x7FF8000000000000), <8 x float> %range.3
  %part.8 = shufflevector <8 x float> %max.2, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %part.9 = shufflevector <8 x float> %max.2, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %range.4 = call <4 x float> @llvm.x86.avx512.mask.range.ps.128(<4 x float> %part.8, <4 x float> %part.9, i32 5, <4 x float> zeroinitializer, i8 -1)
  %uno.3 = fcmp uno <4 x float> %part.8, %part.9
  %max.3 = select <4 x i1> %uno.3, <4 x float> splat (float 0x7FF8000000000000), <4 x float> %range.4
  %part.10 = shufflevector <4 x float> %max.3, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %part.11 = shufflevector <4 x float> %max.3, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %max.4 = call <2 x float> @llvm.maximum.v2f32(<2 x float> %part.10, <2 x float> %part.11)
  %lane = extractelement <2 x float> %max.4, i64 0
  %lane.1 = extractelement <2 x float> %max.4, i64 1
  %max.5 = call float @llvm.maximum.f32(float %lane, float %lane.1)
  %at.4 = getelementptr float, ptr %y, i64 %grid
  store float %max.5, ptr %at.4, align 4
  %grid.next = add nsw i64 %grid, 1
  %more.1 = icmp slt i64 %grid.next, %end
  br i1 %more.1, label %grid.loop, label %grid.done
grid.done:
  br label %join
join:
  ret void
}

define void @long_rows(ptr %buffers, ptr %sizes, i64 %begin, i64 %end, ptr %scratch, ptr %error) nounwind {
entry:
  %item = load ptr, ptr %buffers, align 8
  %at = getelementptr ptr, ptr %buffers, i64 1
  %item.1 = load ptr, ptr %at, align 8
  call void @long_rows.body(ptr %item, ptr %item.1, i64 %begin, i64 %end, ptr %scratch, ptr %error)
  ret void
}

declare float @llvm.maximum.f32(float, float)
declare <2 x float> @llvm.maximum.v2f32(<2 x float>, <2 x float>)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare <4 x float> @llvm.x86.avx512.mask.range.ps.128(<4 x float>, <4 x float>, i32, <4 x float>, i8)
declare <8 x float> @llvm.x86.avx512.mask.range.ps.256(<8 x float>, <8 x float>, i32, <8 x float>, i8)
declare <16 x float> @llvm.x86.avx512.mask.range.ps.512(<16 x float>, <16 x float>, i32, <16 x float>, i16, i32)
