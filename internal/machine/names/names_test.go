package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// These are mangled names of the Itanium C++ ABI and of Rust's v0 mangling. c++filt demangles them to the names in the comments.
const (
	f       = "_ZN2ns1fEi"               // ns::f(int)
	number  = "_ZNK3Foo3barIiEEvT_"      // void Foo::bar<int>(int) const
	plus    = "_ZN1VplERKS_"             // V::operator+(V const&)
	index   = "_ZN1VixEm"                // V::operator[](unsigned long)
	maker   = "_ZN2ns1AC1Ev"             // ns::A::A()
	ender   = "_ZN2ns1AD0Ev"             // ns::A::~A()
	str     = "_ZNKSs4sizeEv"            // std::string::size() const
	hidden  = "_ZN12_GLOBAL__N_14workEv" // (anonymous namespace)::work()
	rust    = "_RNvC6_123foo3bar"        // 123foo::bar
	colder  = "_ZN2ns1fEi.cold"          // ns::f(int) [clone .cold]
	onMacOS = "__ZN2ns1fEi"              // with the additional underscore of Mach-O
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		text                string
		symbol              string
		exact, loose, whole bool
	}{
		{"sum", "sum", true, true, true},
		{"sum", "sum_opt", false, true, false},
		{"sum_.*", "sum_opt", false, true, true},
		{"/sum/", "sum_opt", true, true, true},
		{"/^um/", "sum_opt", false, false, false},
		{"SUM", "sum", false, false, false},
		{"ns::f", f, true, true, true},
		{"ns::f(int)", f, true, true, true},
		{"_ZN2ns1fEi", f, true, true, true},
		{"/^ns::.*\\(int\\)$/", f, true, true, true},
		{"f", f, false, true, false},
		{"ns::", f, false, true, false},
		{"ns::g", f, false, false, false},
		{"ns::f(long)", f, false, false, false},
		{"Foo::bar<int>", number, true, true, true},
		{"void Foo::bar<int>(int) const", number, true, true, true},
		{"V::operator+", plus, true, true, true},
		{"V::operator+(V const&)", plus, true, true, true},
		{"V::operator[]", index, true, true, true},
		{"V::operator[](unsigned long)", index, true, true, true},
		{"ns::A::A", maker, true, true, true},
		{"ns::A::~A", ender, true, true, true},
		{"ns::A::A", ender, false, false, false},
		{"std::string::size", str, true, true, true},
		{"(anonymous namespace)::work", hidden, true, true, true},
		{"123foo::bar", rust, true, true, true},
		{"ns::f(int) [clone .cold]", colder, true, true, true},
		{"ns::f(int)", colder, false, false, false},
		{"_ZN", "_ZNotMangled", false, true, false},
		{"a.c", "abc", false, true, true},
		{"a.c", "a.c", true, true, true},
		{"/a\\.c/", "abc", false, false, false},
		{"//", "a//b", false, true, false},
	} {
		for n, make := range []func(string) (*Pattern, error){Exact, Loose, Whole} {
			p, err := make(c.text)
			require.NoError(t, err, c.text)
			require.Equal(t, []bool{c.exact, c.loose, c.whole}[n], p.Match(c.symbol), "%d: %s and %s, %s", n, c.text, c.symbol, Demangled(c.symbol))
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for text, works := range map[string][3]bool{
		"":             {false, false, false},
		"/(/":          {false, false, false},
		"a(":           {true, false, false},
		"[":            {true, false, false},
		"a)|(?:b":      {true, false, false},
		"\xff":         {true, false, false},
		"*":            {true, false, false},
		"operator*":    {true, true, true},
		"f(int*)":      {true, true, true},
		"V::operator(": {true, true, true},
	} {
		for n, make := range []func(string) (*Pattern, error){Exact, Loose, Whole} {
			_, err := make(text)
			require.Equal(t, works[n], err == nil, "%d: %q: %v", n, text, err)
		}
	}
}

func TestNearest(t *testing.T) {
	all := []string{"__llvm_deoptimize", "deoptimize", "sum", "sum_opt", "main", "memcpy", f, maker, number, "puts", "checksum_of_all"}
	for name, want := range map[string]string{
		"__llvm_deoptimise": "; nearest: __llvm_deoptimize",
		"Deoptimize":        "; nearest: deoptimize, __llvm_deoptimize",
		"summ":              "; nearest: sum",
		"sum":               "; nearest: sum, sum_opt, checksum_of_all",
		"f":                 "; nearest: ns::f",
		"ns::F":             "; nearest: ns::f",
		"nothing_like_it":   "",
		"/mian/":            "; nearest: main",
		"mian":              "; nearest: main",
	} {
		n := NewNearest(name)
		for _, s := range all {
			n.Add(s)
			n.Add(s)
		}
		require.Equal(t, want, n.String(), name)
	}
	n := NewNearest("aaa")
	for _, s := range []string{"aaaa", "aaaaa", "aab", "aac", "aad", "AAA", "aae"} {
		n.Add(s)
	}
	require.Equal(t, "; nearest: AAA, aaaa, aab, aac, aad", n.String())
}

// FuzzMatch requires that any symbol is matched in bounded time, and that the cheap test on the mangled name loses no match.
func FuzzMatch(f *testing.F) {
	for _, s := range []string{number, plus, index, maker, ender, str, hidden, rust, colder, onMacOS} {
		f.Add(s, Short(s))
		f.Add(s, Demangled(s))
	}
	f.Fuzz(func(t *testing.T, symbol, text string) {
		p, err := Exact(text)
		if err != nil || p.Name() == "" {
			return
		}
		want := symbol == text || Demangled(symbol) == text || Short(symbol) == text
		if !want || p.Match(symbol) {
			require.False(t, p.Match(symbol) && !want)
			return
		}
		t.Errorf("%q is %q, %q, and not matched by %q", symbol, Demangled(symbol), Short(symbol), text)
	})
}
