#pragma once
// Domains as text, for kerf_opt and golden tests: ranges and accesses in, canonical axes out.
//
//   domain (p0 < 512, p1 < 9216, reduce k < 4) given s0 in [2, 64]
//     load p1 // 3072
//     store 21504*p0 + p1
// becomes
//   axes (a0 < 512, a1 < 3, a2 < 3072, reduce a3 < 4)
//     load a1
//     store 21504*a0 + 3072*a1 + a2
// followed by `guard VALUE < BOUND` lines; accesses that stay non-affine end in `derived`. Other lines of a domain:
//     mask p0 < 4             a comparison (also >=, ==)
//     cut p1 at 64            a hard cut
//     never_derived           options: pieces of a small digit instead of a derived access;
//     pieces_at_masks         pieces where masks change
// Where the domain falls into pieces, accesses and masks are listed for each: `piece a0 in [0, 53)`.
#include <string>
#include <string_view>

namespace kerf::axis {

// Throws ParseError. Guards and pieces are allowed; axes are named a0, a1, ... in canonical order.
std::string canonicalize_text(std::string_view text);

}  // namespace kerf::axis
