// Strings, whose code is in the module since C++20.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

int main() {
  std::string text, line = "a line that is longer than what a string holds in itself";
  std::vector<std::string> words;
  std::map<std::string, int> count;
  for (int k = 0; k < 40; k++) {
    text += std::to_string(k * k) + ",";
    words.push_back(line.substr(k, k % 7));
    count[words.back()]++;
  }
  text.insert(5, "<here>");
  text.erase(20, 3);
  text.replace(0, 2, words[6]);
  std::printf("%s %zu %zu\n", text.c_str(), text.find("here"), text.rfind("9,"));
  for (const auto &[word, n] : count) std::printf("[%s] %d\n", word.c_str(), n);
  std::wstring wide(30, L'w');
  wide += L"ide";
  std::printf("%zu %d %d\n", wide.size(), (int)wide[31], line < text);
  return line.compare(text) > 0;
}
