;; kernel scale(x: f32[n, m], b: f32[m], out y: bf16[n, m]) given n, m >= 1
;;   for r < n grid
;;     for i < m vector 16
;;       %0 = load x[m*r + i]
;;       %1 = load b[i]
;;       %2 = mul %0, %1
;;       %3 = cast bf16 %2
;;       store y[m*r + i], %3
define internal void @scale.body(ptr noalias nocapture readonly %x, ptr noalias nocapture readonly %b, ptr noalias nocapture %y, i64 %n, i64 %m, i64 %begin, i64 %end, ptr noalias nocapture %scratch, ptr noalias nocapture %error) nounwind {
entry:
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %then, label %join
then:
  br label %grid.loop
grid.loop:
  %grid = phi i64 [ %begin, %then ], [ %grid.next, %i.tail.done ]
  %whole = and i64 %m, -16
  %runs = icmp slt i64 0, %whole
  br i1 %runs, label %i.loop, label %i.done
i.loop:
  %i = phi i64 [ 0, %grid.loop ], [ %i.next, %i.loop ]
  %index = mul i64 %m, %grid
  %at = getelementptr float, ptr %x, i64 %index
  %at.1 = getelementptr float, ptr %at, i64 %i
  %at.2 = getelementptr float, ptr %at.1, i64 %m
  call void @llvm.prefetch.p0(ptr %at.2, i32 0, i32 3, i32 1)
  %load = load <16 x float>, ptr %at.1, align 4
  %at.3 = getelementptr float, ptr %b, i64 %i
  %load.1 = load <16 x float>, ptr %at.3, align 4
  %mul = fmul <16 x float> %load, %load.1
  %word = bitcast <16 x float> %mul to <16 x i32>
  %upper = lshr <16 x i32> %word, splat (i32 16)
  %odd = and <16 x i32> %upper, splat (i32 1)
  %bias = add <16 x i32> %odd, splat (i32 32767)
  %rounded = add <16 x i32> %word, %bias
  %rounded.1 = lshr <16 x i32> %rounded, splat (i32 16)
  %quiet = or <16 x i32> %upper, splat (i32 64)
  %nan = fcmp uno <16 x float> %mul, %mul
  %bf16 = select <16 x i1> %nan, <16 x i32> %quiet, <16 x i32> %rounded.1
  %bf16.1 = trunc <16 x i32> %bf16 to <16 x i16>
  %index.1 = mul i64 %m, %grid
  %at.4 = getelementptr i16, ptr %y, i64 %index.1
  %at.5 = getelementptr i16, ptr %at.4, i64 %i
  store <16 x i16> %bf16.1, ptr %at.5, align 2
  %i.next = add nsw i64 %i, 16
  %more = icmp slt i64 %i.next, %whole
  br i1 %more, label %i.loop, label %i.done
i.done:
  %runs.1 = icmp slt i64 %whole, %m
  br i1 %runs.1, label %i.tail.loop, label %i.tail.done
i.tail.loop:
  %i.tail = phi i64 [ %whole, %i.done ], [ %i.tail.next, %i.tail.loop ]
  %rest = sub i64 %m, %i.tail
  %rest.1 = trunc i64 %rest to i32
  %lane0 = insertelement <16 x i32> poison, i32 %rest.1, i32 0
  %splat = shufflevector <16 x i32> %lane0, <16 x i32> poison, <16 x i32> zeroinitializer
  %mask = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %splat
  %index.2 = mul i64 %m, %grid
  %at.6 = getelementptr float, ptr %x, i64 %index.2
  %at.7 = getelementptr float, ptr %at.6, i64 %i.tail
  %load.2 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %at.7, i32 4, <16 x i1> %mask, <16 x float> zeroinitializer)
  %at.8 = getelementptr float, ptr %b, i64 %i.tail
  %load.3 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %at.8, i32 4, <16 x i1> %mask, <16 x float> zeroinitializer)
  %mul.1 = fmul <16 x float> %load.2, %load.3
  %word.1 = bitcast <16 x float> %mul.1 to <16 x i32>
  %upper.1 = lshr <16 x i32> %word.1, splat (i32 16)
  %odd.1 = and <16 x i32> %upper.1, splat (i32 1)
  %bias.1 = add <16 x i32> %odd.1, splat (i32 32767)
  %rounded.2 = add <16 x i32> %word.1, %bias.1
  %rounded.3 = lshr <16 x i32> %rounded.2, splat (i32 16)
  %quiet.1 = or <16 x i32> %upper.1, splat (i32 64)
  %nan.1 = fcmp uno <16 x float> %mul.1, %mul.1
  %bf16.2 = select <16 x i1> %nan.1, <16 x i32> %quiet.1, <16 x i32> %rounded.3
  %bf16.3 = trunc <16 x i32> %bf16.2 to <16 x i16>
  %index.3 = mul i64 %m, %grid
  %at.9 = getelementptr i16, ptr %y, i64 %index.3
  %at.10 = getelementptr i16, ptr %at.9, i64 %i.tail
  call void @llvm.masked.store.v16i16.p0(<16 x i16> %bf16.3, ptr %at.10, i32 2, <16 x i1> %mask)
  %i.tail.next = add nsw i64 %i.tail, 16
  %more.1 = icmp slt i64 %i.tail.next, %m
  br i1 %more.1, label %i.tail.loop, label %i.tail.done
i.tail.done:
  %grid.next = add nsw i64 %grid, 1
  %more.2 = icmp slt i64 %grid.next, %end
  br i1 %more.2, label %grid.loop, label %grid.done
grid.done:
  br label %join
join:
  ret void
}

define void @scale(ptr %buffers, ptr %sizes, i64 %begin, i64 %end, ptr %scratch, ptr %error) nounwind {
entry:
  %item = load ptr, ptr %buffers, align 8
  %at = getelementptr ptr, ptr %buffers, i64 1
  %item.1 = load ptr, ptr %at, align 8
  %at.1 = getelementptr ptr, ptr %buffers, i64 2
  %item.2 = load ptr, ptr %at.1, align 8
  %item.3 = load i64, ptr %sizes, align 8
  %at.2 = getelementptr i64, ptr %sizes, i64 1
  %item.4 = load i64, ptr %at.2, align 8
  call void @scale.body(ptr %item, ptr %item.1, ptr %item.2, i64 %item.3, i64 %item.4, i64 %begin, i64 %end, ptr %scratch, ptr %error)
  ret void
}

declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16i16.p0(<16 x i16>, ptr, i32, <16 x i1>)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
