// Coroutines: tokens, intrinsics of their own, functions split in three.
#include <coroutine>
struct Numbers {
  struct promise_type {
    int v;
    Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int x) { v = x; return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> h;
};
Numbers count(int n) { for (int i = 0; i < n; i++) co_yield i; }
int main() { Numbers t = count(3); t.h.resume(); t.h.resume(); int v = t.h.promise().v; t.h.destroy(); return v; }
