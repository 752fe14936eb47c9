// Two functions that cannot be read, and one that can.
int jumps(int x) { __asm__ goto("jmp %l1" ::"r"(x)::lab); return 1; lab: return 2; }
int result(int x) { int y; __asm__ goto("mov %1,%0; jmp %l2" : "=r"(y) : "r"(x)::lab); return y; lab: return 2; }
int plain(int x) { return x + 1; }
