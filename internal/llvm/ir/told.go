package ir

// Telling is a value that other values determine. They do so wherever all of them are operands of one instruction, or could be: every path from the
// definition of the value to there passes their definitions.
type Telling struct {
	Value Value
	By    []Value // of an integer what extends it; of a struct or array its elements, in their order
}

// maxTold is the number of elements up to which an aggregate can be determined by its elements.
const maxTold = 16

// Told returns the values that some values determine and that are not among them. A telling comes after those of the values in its By.
func Told(values []Value) (told []Telling) {
	known := map[Value]bool{}
	for _, v := range values {
		known[v] = true
	}
	elements := map[Value][]Value{}
	queue := append([]Value(nil), values...)
	for n := 0; n < len(queue); n++ {
		i, ok := queue[n].(*Instr)
		if !ok {
			continue
		}
		var by []Value
		switch {
		case (i.Op == OpZExt || i.Op == OpSExt) && i.Typ.Kind == IntKind:
			by = []Value{i}
		case i.Op == OpExtractValue && len(i.Path) == 1:
			by = element(elements, i)
		}
		if by == nil || known[i.Args[0]] {
			continue
		}
		known[i.Args[0]] = true
		queue = append(queue, i.Args[0])
		told = append(told, Telling{i.Args[0], by})
	}
	return told
}

// Elements returns the number of elements or fields of a struct or array that its elements can determine, else 0.
func Elements(t *Type) int {
	switch {
	case t.Kind == StructKind && len(t.Fields) <= maxTold:
		return len(t.Fields)
	case t.Kind == ArrayKind && t.Len <= maxTold:
		return int(t.Len)
	}
	return 0
}

// element notes one of an aggregate, and returns all of them when it is the last that was not there.
func element(elements map[Value][]Value, i *Instr) []Value {
	of, n := i.Args[0], i.Path[0]
	if elements[of] == nil {
		elements[of] = make([]Value, Elements(of.Type()))
	}
	all := elements[of]
	if n < 0 || n >= len(all) {
		return nil
	}
	all[n] = i
	for _, v := range all {
		if v == nil {
			return nil
		}
	}
	return all
}
