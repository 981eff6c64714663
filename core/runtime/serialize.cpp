#include "runtime/serialize.h"

#include "base/error.h"
#include "runtime/content_hash.h"
#include "runtime/lifetimes.h"
#include "runtime/plan_text.h"

namespace kerf::runtime {

namespace {

// Another layout of the bytes or another text form is another version.
constexpr std::string_view kMagic = "kerf plan 1\n";
constexpr size_t kHashDigits = 32;

void put_length(std::string& out, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift);
}

void put(std::string& out, std::string_view part) {
  put_length(out, part.size());
  out += part;
}

// Takes parts off the front; nullopt once the bytes do not suffice.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}
  bool at_end() const { return rest_.empty(); }

  std::optional<std::string_view> take(size_t count) {
    if (count > rest_.size()) return std::nullopt;
    std::string_view result = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return result;
  }

  std::optional<std::string_view> take_part() {
    std::optional<std::string_view> length = take(8);
    if (!length) return std::nullopt;
    uint64_t value = 0;
    for (size_t i = 0; i < 8; ++i) value |= uint64_t{static_cast<unsigned char>((*length)[i])} << (8 * i);
    return take(value);
  }

 private:
  std::string_view rest_;
};

std::optional<Plan> read_body(Bytes body) {
  std::optional<std::string_view> text = body.take_part();
  if (!text) return std::nullopt;
  std::vector<std::string> hashes;
  Plan plan = parse_plan(*text, &hashes);
  for (size_t i = 0; i < plan.artifacts.size(); ++i) {
    std::optional<std::string_view> object = body.take_part();
    if (!object) return std::nullopt;
    if ((object->empty() ? "" : content_hash({*object})) != hashes[i]) return std::nullopt;
    plan.artifacts[i].object = *object;
  }
  if (!body.at_end()) return std::nullopt;
  verify(plan);
  return plan;
}

}  // namespace

std::string serialize(const Plan& plan) {
  std::string body;
  put(body, to_text(plan));
  for (const target::CpuArtifact& artifact : plan.artifacts) put(body, artifact.object);
  std::string out(kMagic);
  out += content_hash({body});
  return out + body;
}

std::optional<Plan> deserialize(std::string_view bytes) {
  Bytes reader(bytes);
  std::optional<std::string_view> magic = reader.take(kMagic.size());
  if (!magic || *magic != kMagic) return std::nullopt;
  std::optional<std::string_view> hash = reader.take(kHashDigits);
  if (!hash || *hash != content_hash({bytes.substr(kMagic.size() + kHashDigits)})) return std::nullopt;
  // A body with a right checksum was written by us; it can still be of a version that forgot to say so.
  try {
    return read_body(reader);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace kerf::runtime
