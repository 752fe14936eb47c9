package ir

// Telling is a value that can be computed from other values, at any place where all of them are available as operands. Every path from the definition
// of the value to such a place passes the definitions of the others.
type Telling struct {
	Value Value
	By    []Value // the values to compute it from: for an integer, its extension; for a struct or array, its elements in order
}

// maxTold is the greatest number of elements of an aggregate that Told considers.
const maxTold = 16

// Told returns the further values that can be computed from the given values. If a value in By is itself a result, its entry comes first.
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

// Elements returns the number of elements of a struct or array that Told considers, or 0.
func Elements(t *Type) int {
	switch {
	case t.Kind == StructKind && len(t.Fields) <= maxTold:
		return len(t.Fields)
	case t.Kind == ArrayKind && t.Len <= maxTold:
		return int(t.Len)
	}
	return 0
}

// element records an element of an aggregate. It returns all elements when the last missing one is recorded, and nil before.
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
