// Compresses standard input and back in all the ways that Snappy has, or tests it if it is compressed: trip NAME. The compressed bytes follow the results.
#include <cstdio>
#include <string>
#include <vector>

#include "snappy-sinksource.h"
#include "snappy.h"

static std::string read() {
  std::string text;
  char block[4096];
  while (size_t n = std::fread(block, 1, sizeof block, stdin)) text.append(block, n);
  return text;
}

// scattered uncompresses into pieces of odd sizes.
static bool scattered(const std::string &packed, size_t size, std::string *out) {
  out->assign(size, '?');
  std::vector<struct iovec> pieces;
  for (size_t at = 0, next = 1; at < size; at += pieces.back().iov_len, next = next * 5 % 257)
    pieces.push_back({&(*out)[at], next < size - at ? next : size - at});
  return snappy::RawUncompressToIOVec(packed.data(), packed.size(), pieces.data(), pieces.size());
}

static void trip(const std::string &name) {
  std::string plain = read(), packed, back, raw, pieces;
  if (name.size() > 7 && name.compare(name.size() - 7, 7, ".snappy") == 0) {
    size_t size = 0;
    bool length = snappy::GetUncompressedLength(plain.data(), plain.size(), &size);
    std::printf("%s: %d %zu %d %d\n", name.c_str(), length, size, snappy::IsValidCompressedBuffer(plain.data(), plain.size()),
                size < 1 << 20 && snappy::Uncompress(plain.data(), plain.size(), &back));
    return;
  }
  snappy::Compress(plain.data(), plain.size(), &packed);
  raw.resize(plain.size());
  std::string sunk(plain.size(), '?');
  snappy::ByteArraySource source(packed.data(), packed.size());
  snappy::UncheckedByteArraySink sink(&sunk[0]);
  std::printf("%s: %zu to %zu", name.c_str(), plain.size(), packed.size());
  std::printf(" %d", snappy::Uncompress(packed.data(), packed.size(), &back) && back == plain);
  std::printf(" %d", snappy::RawUncompress(packed.data(), packed.size(), &raw[0]) && raw == plain);
  std::printf(" %d", scattered(packed, plain.size(), &pieces) && pieces == plain);
  std::printf(" %d", snappy::Uncompress(&source, &sink) && sunk == plain);
  std::printf(" %d\n", snappy::IsValidCompressedBuffer(packed.data(), packed.size() - 1));
  std::fwrite(packed.data(), 1, packed.size(), stdout);
}

int main(int, char **argv) {
  trip(argv[1]);
  return 0;
}
