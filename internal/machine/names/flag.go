package names

// Flag is a pattern on a command line. It is a Value of github.com/spf13/pflag.
type Flag struct {
	into **Pattern
	make func(string) (*Pattern, error)
}

// Into makes a flag that sets a pattern, by [Exact], [Loose] or [Whole].
func Into(p **Pattern, by func(string) (*Pattern, error)) *Flag { return &Flag{p, by} }

// Set reads what was typed.
func (f *Flag) Set(text string) (err error) {
	*f.into, err = f.make(text)
	return err
}

func (f *Flag) String() string {
	if f.into == nil || *f.into == nil {
		return ""
	}
	return (*f.into).Text
}

// Type is what help calls it.
func (f *Flag) Type() string { return "NAME" }

// ListFlag is several patterns, each by [Exact]. It is a Value and a SliceValue of pflag.
type ListFlag struct{ into *[]*Pattern }

// IntoAll makes a flag that may be given several times.
func IntoAll(list *[]*Pattern) *ListFlag { return &ListFlag{list} }

// Set reads one more.
func (f *ListFlag) Set(text string) error { return f.Append(text) }

// Append reads one more.
func (f *ListFlag) Append(text string) error {
	p, err := Exact(text)
	if err == nil {
		*f.into = append(*f.into, p)
	}
	return err
}

// Replace reads all anew.
func (f *ListFlag) Replace(texts []string) error {
	*f.into = nil
	for _, text := range texts {
		if err := f.Append(text); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice returns what was typed.
func (f *ListFlag) GetSlice() (texts []string) {
	for _, p := range *f.into {
		texts = append(texts, p.Text)
	}
	return texts
}

func (f *ListFlag) String() string { return "" }

// Type is what help calls it.
func (f *ListFlag) Type() string { return "NAME" }
