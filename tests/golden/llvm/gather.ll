;; kernel gather(w: f32[100, 24], j: i64[n], local t: f32[24], out y: f32[n, 24]) given n >= 1
;;   for r < n grid
;;     %0 = load j[r]
;;     %1 = const i64 100
;;     %2 = wrap_index %0, %1
;;     for i < 24 vector 16
;;       %3 = load w[24*%2 + i]
;;       store t[i], %3
;;     for k < 24 vector 16
;;       %4 = load t[23 - k]
;;       store y[24*r + k], %4
define internal void @gather.body(ptr noalias nocapture readonly %w, ptr noalias nocapture readonly %j, ptr noalias nocapture %y, i64 %n, i64 %begin, i64 %end, ptr noalias nocapture %scratch, ptr noalias nocapture %error) nounwind {
entry:
  %t = alloca float, i64 24, align 64
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %then, label %join
then:
  br label %grid.loop
grid.loop:
  %grid = phi i64 [ %begin, %then ], [ %grid.next, %k.tail.done ]
  %at = getelementptr i64, ptr %j, i64 %grid
  %load = load i64, ptr %at, align 8
  %negative = icmp slt i64 %load, 0
  %wrapped = add i64 %load, 100
  %wrap = select i1 %negative, i64 %wrapped, i64 %load
  %above = icmp sge i64 %wrap, 100
  %below = icmp slt i64 %wrap, 0
  %outside = or i1 %below, %above
  br i1 %outside, label %failed, label %checked, !prof !{!"branch_weights", i32 1, i32 1048575}
failed:
  call void @kerf.report(ptr %error, i64 1, i64 %load, i64 100, i64 2)
  br label %checked
checked:
  %index = select i1 %outside, i64 0, i64 %wrap
  br label %i.loop
i.loop:
  %i = phi i64 [ 0, %checked ], [ %i.next, %i.loop ]
  %index.1 = mul i64 24, %index
  %at.1 = getelementptr float, ptr %w, i64 %i
  %at.2 = getelementptr float, ptr %at.1, i64 %index.1
  %load.1 = load <16 x float>, ptr %at.2, align 4
  %at.3 = getelementptr float, ptr %t, i64 %i
  store <16 x float> %load.1, ptr %at.3, align 4
  %i.next = add nsw i64 %i, 16
  %more = icmp slt i64 %i.next, 16
  br i1 %more, label %i.loop, label %i.done
i.done:
  %runs = icmp slt i64 16, 24
  br i1 %runs, label %i.tail.loop, label %i.tail.done
i.tail.loop:
  %i.tail = phi i64 [ 16, %i.done ], [ %i.tail.next, %i.tail.loop ]
  %rest = sub i64 24, %i.tail
  %rest.1 = trunc i64 %rest to i32
  %lane0 = insertelement <16 x i32> poison, i32 %rest.1, i32 0
  %splat = shufflevector <16 x i32> %lane0, <16 x i32> poison, <16 x i32> zeroinitializer
  %mask = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %splat
  %index.2 = mul i64 24, %index
  %at.4 = getelementptr float, ptr %w, i64 %i.tail
  %at.5 = getelementptr float, ptr %at.4, i64 %index.2
  %load.2 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %at.5, i32 4, <16 x i1> %mask, <16 x float> zeroinitializer)
  %at.6 = getelementptr float, ptr %t, i64 %i.tail
  call void @llvm.masked.store.v16f32.p0(<16 x float> %load.2, ptr %at.6, i32 4, <16 x i1> %mask)
  %i.tail.next = add nsw i64 %i.tail, 16
  %more.1 = icmp slt i64 %i.tail.next, 24
  br i1 %more.1, label %i.tail.loop, label %i.tail.done
i.tail.done:
  br label %k.loop
k.loop:
  %k = phi i64 [ 0, %i.tail.done ], [ %k.next, %k.loop ]
  %index.3 = mul i64 -1, %k
  %at.7 = getelementptr float, ptr %t, i64 %index.3
  %at.8 = getelementptr float, ptr %at.7, i64 23
  %at.9 = getelementptr float, ptr %at.8, i64 -15
  %load.3 = load <16 x float>, ptr %at.9, align 4
  %reverse = shufflevector <16 x float> %load.3, <16 x float> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %index.4 = mul i64 24, %grid
  %at.10 = getelementptr float, ptr %y, i64 %index.4
  %at.11 = getelementptr float, ptr %at.10, i64 %k
  store <16 x float> %reverse, ptr %at.11, align 4
  %k.next = add nsw i64 %k, 16
  %more.2 = icmp slt i64 %k.next, 16
  br i1 %more.2, label %k.loop, label %k.done
k.done:
  %runs.1 = icmp slt i64 16, 24
  br i1 %runs.1, label %k.tail.loop, label %k.tail.done
k.tail.loop:
  %k.tail = phi i64 [ 16, %k.done ], [ %k.tail.next, %k.tail.loop ]
  %rest.2 = sub i64 24, %k.tail
  %rest.3 = trunc i64 %rest.2 to i32
  %lane0.1 = insertelement <16 x i32> poison, i32 %rest.3, i32 0
  %splat.1 = shufflevector <16 x i32> %lane0.1, <16 x i32> poison, <16 x i32> zeroinitializer
  %mask.1 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %splat.1
  %index.5 = mul i64 -1, %k.tail
  %at.12 = getelementptr float, ptr %t, i64 %index.5
  %at.13 = getelementptr float, ptr %at.12, i64 23
  %at.14 = getelementptr float, ptr %at.13, i64 -15
  %reverse.1 = shufflevector <16 x i1> %mask.1, <16 x i1> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %load.4 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %at.14, i32 4, <16 x i1> %reverse.1, <16 x float> zeroinitializer)
  %reverse.2 = shufflevector <16 x float> %load.4, <16 x float> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %index.6 = mul i64 24, %grid
  %at.15 = getelementptr float, ptr %y, i64 %index.6
  %at.16 = getelementptr float, ptr %at.15, i64 %k.tail
  call void @llvm.masked.store.v16f32.p0(<16 x float> %reverse.2, ptr %at.16, i32 4, <16 x i1> %mask.1)
  %k.tail.next = add nsw i64 %k.tail, 16
  %more.3 = icmp slt i64 %k.tail.next, 24
  br i1 %more.3, label %k.tail.loop, label %k.tail.done
k.tail.done:
  %grid.next = add nsw i64 %grid, 1
  %more.4 = icmp slt i64 %grid.next, %end
  br i1 %more.4, label %grid.loop, label %grid.done
grid.done:
  br label %join
join:
  ret void
}

define void @gather(ptr %buffers, ptr %sizes, i64 %begin, i64 %end, ptr %scratch, ptr %error) nounwind {
entry:
  %item = load ptr, ptr %buffers, align 8
  %at = getelementptr ptr, ptr %buffers, i64 1
  %item.1 = load ptr, ptr %at, align 8
  %at.1 = getelementptr ptr, ptr %buffers, i64 2
  %item.2 = load ptr, ptr %at.1, align 8
  %item.3 = load i64, ptr %sizes, align 8
  call void @gather.body(ptr %item, ptr %item.1, ptr %item.2, i64 %item.3, i64 %begin, i64 %end, ptr %scratch, ptr %error)
  ret void
}

define internal void @kerf.report(ptr %error, i64 %code, i64 %index, i64 %bound, i64 %value) cold noinline nounwind {
entry:
  %claim = cmpxchg ptr %error, i64 0, i64 %code monotonic monotonic
  %first = extractvalue { i64, i1 } %claim, 1
  br i1 %first, label %write, label %done
write:
  %at.index = getelementptr i64, ptr %error, i64 1
  store i64 %index, ptr %at.index, align 8
  %at.bound = getelementptr i64, ptr %error, i64 2
  store i64 %bound, ptr %at.bound, align 8
  %at.value = getelementptr i64, ptr %error, i64 3
  store i64 %value, ptr %at.value, align 8
  br label %done
done:
  ret void
}

declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)
