// std::string, whose code is in the module since C++20.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

int main() {
  std::string text, line = "a line that is longer than what a string holds in itself";
  std::vector<std::string> words;
  for (int k = 0; k < 40; k++) {
    text += std::to_string(k * k) + ",";
    words.push_back(line.substr(k, k % 7));
  }
  text.insert(5, "<here>");
  text.erase(20, 3);
  text.replace(0, 2, words[6]);
  std::printf("%s %zu %zu\n", text.c_str(), text.find("here"), text.rfind("9,"));
  std::sort(words.begin(), words.end());
  for (const auto &word : words) std::printf("[%s]\n", word.c_str());
  std::printf("%d\n", line < text);
  return line.compare(text) > 0;
}
