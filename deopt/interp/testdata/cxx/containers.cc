// The containers whose functions libstdc++ has compiled, and the shapes of the trees that come of them.
#include <cstdio>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

static unsigned state = 1;
static unsigned next() {
  state = state * 1103515245 + 12345;
  return state >> 16 & 0x7fff;
}

// A tree of bare nodes, so that nothing but libstdc++ sets its colors.
struct Node : std::_Rb_tree_node_base {
  int key;
};

static void print(const std::_Rb_tree_node_base *n) {
  if (!n) {
    std::printf(".");
    return;
  }
  std::printf("(%d%c", static_cast<const Node *>(n)->key, n->_M_color == std::_S_red ? 'r' : 'b');
  print(n->_M_left);
  print(n->_M_right);
  std::printf(")");
}

static void trees() {
  static Node nodes[200];
  for (int limit : {1, 2, 3, 7, 20, 200}) {
    std::_Rb_tree_node_base header;
    header._M_color = std::_S_red;
    header._M_parent = nullptr;
    header._M_left = header._M_right = &header;
    bool in[200] = {};
    int count = 0;
    for (int step = 0; step < 300; step++) {
      int k = next() % limit;
      Node *n = &nodes[k];
      if (in[k]) {
        std::_Rb_tree_node_base *gone = std::_Rb_tree_rebalance_for_erase(n, header);
        std::printf("-%d ", static_cast<Node *>(gone)->key);
        count--;
      } else {
        n->key = k;
        std::_Rb_tree_node_base *up = &header, *at = header._M_parent;
        bool left = true;
        while (at) {
          up = at;
          left = k < static_cast<Node *>(at)->key;
          at = left ? at->_M_left : at->_M_right;
        }
        std::_Rb_tree_insert_and_rebalance(left, n, up, header);
        count++;
      }
      in[k] = !in[k];
      if (step % 10 == 0 || limit < 5) {
        print(header._M_parent);
        std::printf("\n");
      }
      int seen = 0, expect = -1;
      for (auto *i = header._M_left; i != &header; i = std::_Rb_tree_increment(i)) {
        if (static_cast<Node *>(i)->key <= expect) std::puts("out of order");
        expect = static_cast<Node *>(i)->key;
        seen++;
      }
      for (auto *i = &header; count && i != header._M_left; seen--) {
        i = std::_Rb_tree_decrement(i);
        if (i == &header) std::puts("lost");
      }
      if (seen) std::printf("%d left over\n", seen);
    }
  }
}

static void policies() {
  for (float factor : {1.0f, 0.5f, 3.25f, 0.01f}) {
    std::__detail::_Prime_rehash_policy p(factor);
    for (unsigned n : {0u, 1u, 2u, 3u, 4u, 12u, 13u, 14u, 15u, 16u, 17u, 18u, 29u, 30u, 1000u, 65536u, 1000003u, 20000000u}) {
      std::size_t next = p._M_next_bkt(n);
      std::printf("%zu %zu ", next, p._M_state());
      auto need = p._M_need_rehash(next, n / 2, 1 + n);
      std::printf("%d %zu %zu; ", need.first, need.first ? need.second : 0, p._M_state());
    }
    std::printf("\n");
  }
}

int main() {
  trees();
  policies();

  std::map<int, int> m;
  std::multimap<int, char> mm;
  std::set<unsigned> s;
  for (int k = 0; k < 500; k++) {
    m[next() % 100] += k;
    mm.insert({static_cast<int>(next() % 10), static_cast<char>('a' + k % 26)});
    s.insert(next());
    if (k % 3 == 0) m.erase(next() % 100);
    if (k % 7 == 0) mm.erase(next() % 10);
  }
  for (auto &[k, v] : m) std::printf("%d:%d ", k, v);
  for (auto i = m.rbegin(); i != m.rend(); ++i) std::printf("%d ", i->first);
  for (auto &[k, v] : mm) std::printf("%d%c", k, v);
  std::printf("\n%zu %u %u\n", s.size(), *s.begin(), *s.rbegin());
  auto part = m.extract(m.begin()->first);
  std::printf("%d %zu\n", part.key(), m.size());

  std::unordered_map<int, int> u;
  for (int k = 0; k < 1000; k++) {
    u[next() % 700] += k;
    if (k % 100 == 0) std::printf("%zu/%zu ", u.size(), u.bucket_count());
  }
  for (auto &[k, v] : u) std::printf("%d:%d ", k, v);
  u.rehash(5000);
  u.max_load_factor(0.3f);
  std::printf("%zu\n", u.bucket_count());
  u.reserve(3000);
  std::printf("%zu\n", u.bucket_count());
  std::unordered_set<double> d;
  for (int k = 0; k < 50; k++) d.insert(k * 0.75);
  for (double x : d) std::printf("%g ", x);
  std::printf("\n");

  char text[40];
  for (int k = 0; k < 40; k++) text[k] = static_cast<char>(next());
  for (std::size_t n = 0; n < 40; n++) std::printf("%zx %zx ", std::_Hash_bytes(text, n, 0xc70f6907u), std::_Fnv_hash_bytes(text, n, 2166136261u));
  std::printf("\n");

  std::list<int> a{5, 1, 4}, b{9, 8, 2, 7}, empty;
  a.splice(std::next(a.begin()), b, std::next(b.begin()), std::prev(b.end()));
  a.reverse();
  a.push_front(3);
  a.remove(4);
  a.swap(b);
  a.swap(empty);
  b.sort();
  b.merge(empty);
  for (auto *l : {&a, &b, &empty}) {
    for (int x : *l) std::printf("%d ", x);
    std::printf("| ");
    for (auto i = l->rbegin(); i != l->rend(); ++i) std::printf("%d ", *i);
    std::printf("\n");
  }
  std::list<int>().reverse();
  return 0;
}
