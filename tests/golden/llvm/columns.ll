;; kernel columns(x: f32[4096, 64], out y: f32[64])
;;   for i < 4 grid
;;     for j < 16 vector 16
;;       %1 = reduce max for r < 4096
;;         %0 = load x[16*i + j + 64*r]
;;         yield %0
;;       store y[16*i + j], %1
define internal void @columns.body(ptr noalias nocapture readonly %x, ptr noalias nocapture %y, i64 %begin, i64 %end, ptr noalias nocapture %scratch, ptr noalias nocapture %error) nounwind {
entry:
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %then, label %join
then:
  br label %grid.loop
grid.loop:
  %grid = phi i64 [ %begin, %then ], [ %grid.next, %j.done ]
  br label %j.loop
j.loop:
  %j = phi i64 [ 0, %grid.loop ], [ %j.next, %r.done ]
  br label %r.loop
r.loop:
  %r = phi i64 [ 0, %j.loop ], [ %r.next, %r.loop ]
  %acc = phi <16 x float> [ splat (float 0xFFF0000000000000), %j.loop ], [ %max, %r.loop ]
  %index = mul i64 16, %grid
  %index.1 = mul i64 64, %r
  %at = getelementptr float, ptr %x, i64 %index
  %at.1 = getelementptr float, ptr %at, i64 %j
  %at.2 = getelementptr float, ptr %at.1, i64 %index.1
  %at.3 = getelementptr float, ptr %at.2, i64 2048
  call void @llvm.prefetch.p0(ptr %at.3, i32 0, i32 3, i32 1)
  %load = load <16 x float>, ptr %at.2, align 4
  %range = call <16 x float> @llvm.x86.avx512.mask.range.ps.512(<16 x float> %acc, <16 x float> %load, i32 5, <16 x float> zeroinitializer, i16 -1, i32 4)
  %uno = fcmp uno <16 x float> %acc, %load
  %max = select <16 x i1> %uno, <16 x float> splat (float 0x7FF8000000000000), <16 x float> %range
  %r.next = add nsw i64 %r, 1
  %more = icmp slt i64 %r.next, 4096
  br i1 %more, label %r.loop, label %r.done
r.done:
  %index.2 = mul i64 16, %grid
  %at.4 = getelementptr float, ptr %y, i64 %index.2
  %at.5 = getelementptr float, ptr %at.4, i64 %j
  store <16 x float> %max, ptr %at.5, align 4
  %j.next = add nsw i64 %j, 16
  %more.1 = icmp slt i64 %j.next, 16
  br i1 %more.1, label %j.loop, label %j.done
j.done:
  %grid.next = add nsw i64 %grid, 1
  %more.2 = icmp slt i64 %grid.next, %end
  br i1 %more.2, label %grid.loop, label %grid.done
grid.done:
  br label %join
join:
  ret void
}

define void @columns(ptr %buffers, ptr %sizes, i64 %begin, i64 %end, ptr %scratch, ptr %error) nounwind {
entry:
  %item = load ptr, ptr %buffers, align 8
  %at = getelementptr ptr, ptr %buffers, i64 1
  %item.1 = load ptr, ptr %at, align 8
  call void @columns.body(ptr %item, ptr %item.1, i64 %begin, i64 %end, ptr %scratch, ptr %error)
  ret void
}

declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare <16 x float> @llvm.x86.avx512.mask.range.ps.512(<16 x float>, <16 x float>, i32, <16 x float>, i16, i32)
