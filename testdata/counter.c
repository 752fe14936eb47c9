// A static variable that has the name of one that another object, made from LLVM IR, keeps to itself.
static volatile long counter = 11;
long bump(void) { return counter++; }
