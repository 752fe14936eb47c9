package names

// Flag is a command-line flag that holds a pattern. It implements Value of github.com/spf13/pflag.
type Flag struct {
	into **Pattern
	make func(string) (*Pattern, error)
}

// Into returns a flag that sets p. by is [Exact], [Loose] or [Whole].
func Into(p **Pattern, by func(string) (*Pattern, error)) *Flag { return &Flag{p, by} }

// Set parses the value of the flag.
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

// Type returns the placeholder that help prints for the value.
func (f *Flag) Type() string { return "NAME" }

// ListFlag is a command-line flag that may be repeated; it holds patterns made by [Exact]. It implements Value and SliceValue of pflag.
type ListFlag struct{ into *[]*Pattern }

// IntoAll returns a flag that appends to list.
func IntoAll(list *[]*Pattern) *ListFlag { return &ListFlag{list} }

// Set parses one more value.
func (f *ListFlag) Set(text string) error { return f.Append(text) }

// Append parses one more value.
func (f *ListFlag) Append(text string) error {
	p, err := Exact(text)
	if err == nil {
		*f.into = append(*f.into, p)
	}
	return err
}

// Replace parses a new list of values.
func (f *ListFlag) Replace(texts []string) error {
	*f.into = nil
	for _, text := range texts {
		if err := f.Append(text); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice returns the values as they were typed.
func (f *ListFlag) GetSlice() (texts []string) {
	for _, p := range *f.into {
		texts = append(texts, p.Text)
	}
	return texts
}

func (f *ListFlag) String() string { return "" }

// Type returns the placeholder that help prints for the value.
func (f *ListFlag) Type() string { return "NAME" }
