/* A program that ends by a signal, and so in a core. */
static long *volatile nowhere = (long *)16;

#ifdef OTHER
long other(void) { return *nowhere + 1; }
#endif

int main(void)
{
	return (int)*nowhere;
}
