package vmlayout

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

// stream converts bytes to a site: a kind and an id, and three bytes or more for each operand, which often has a meaning in an encoding.
func stream(data []byte) *Site {
	at := 0
	next := func() int64 {
		if at >= len(data) {
			return 0
		}
		at++
		return int64(data[at-1])
	}
	s := &Site{Function: "f", Kind: []string{"stackmap", "patchpoint", "statepoint", "deoptimize", "unknown", ""}[next()%6], Record: uint64(next())<<32 | uint64(next())}
	for range next() % 4 {
		s.Args = append(s.Args, constant("i32", next()))
	}
	if s.Record&0xff == 0xff {
		s.Record |= 0xffffffff
	}
	basics := []int64{6, 7, 10, 11, 12, 13, 99, 15, 16, 17, 4}
	types := []string{"i32", "i64", "f64", "ref", "i8", "f32", "i16", ""}
	for at < len(data) {
		switch next() % 9 {
		case 0: // a tag of simple
			s.Operands = append(s.Operands, tag(next()%9, next()%6, next()%8))
		case 1: // an encoding of Jeandle
			s.Operands = append(s.Operands, enc(next()%6, next()%11, basics[next()%int64(len(basics))]))
		case 2:
			s.Operands = append(s.Operands, constant("i32", next()%8))
		case 3: // a key of Ark
			s.Operands = append(s.Operands, constant("i32", int64(int8(next()))))
		case 4:
			s.Operands = append(s.Operands, constant([]string{"i64", "i16"}[next()%2], next()%70))
		case 5:
			s.Operands = append(s.Operands, Operand{Undef: true, Type: plain["i8"]})
		case 6: // an operand of any kind
			n := binary.LittleEndian.Uint64([]byte{byte(next()), byte(next()), byte(next()), byte(next()), byte(next()), byte(next()), byte(next()), byte(next())})
			s.Operands = append(s.Operands, Operand{Constant: new(big.Int).SetUint64(n)})
		default:
			s.Operands = append(s.Operands, value(types[next()%8], "%x"))
		}
	}
	return s
}

// held runs a layout for a site, and reads the result. The layout must return a readable shape, an error, or nil for a site of another layout.
func held(t *testing.T, l *Layout, s *Site) (*Shape, error) {
	shape, err := l.Frames(s)
	if err != nil {
		require.IsType(t, &Error{}, err)
		require.Nil(t, shape)
		return nil, err
	}
	if shape == nil {
		return nil, nil
	}
	bits := map[int]uint64{}
	for k := range s.Operands {
		if k%5 != 4 {
			bits[k] = 0x1000 + uint64(k)<<40*uint64(k%3)
		}
	}
	m := memory{0x1000: string(make([]byte, 64))}
	vm := shape.Read(&Source{Slots: slots(s.Operands, bits), Memory: m, Static: m, Order: binary.LittleEndian})
	require.Len(t, vm.Frames, len(shape.Frames))
	require.Empty(t, vm.Error)
	for n, f := range vm.Frames {
		require.Contains(t, []string{frame.Reexecute, frame.Completed, frame.Calling, frame.Rethrow}, f.Resume, n)
	}
	return shape, nil
}

// FuzzLayouts runs each builtin layout over random operands.
func FuzzLayouts(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 0, 1, 0, 2, 7, 3, 2, 5, 0, 2, 0, 0, 7, 1})
	f.Add([]byte{3, 0, 0, 0, 4, 0, 0, 2, 5, 2, 5, 1, 0, 0, 2, 7, 0})
	f.Add([]byte{0, 3, 255, 0, 2, 1, 2, 2, 7, 3, 2, 0, 7, 0})
	f.Add([]byte{2, 0, 0, 0, 3, 255, 2, 0, 3, 254, 2, 7, 3, 251, 7, 3})
	f.Add([]byte{2, 0, 0, 0, 4, 1, 5, 4, 1, 1, 7, 0, 4, 0, 1})
	var layouts []*Layout
	for _, name := range Builtin() {
		layouts = append(layouts, builtinLayout(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<10 {
			return
		}
		s := stream(data)
		for _, l := range layouts {
			_, _ = held(t, l, s) // an error and nil are allowed
		}
	})
}

// tokens holds the beginnings of operands of each layout, so that not all random streams end at the first operand.
var tokens = map[string][][]byte{
	"simple":  {{0, 1, 0, 2, 7, 3, 2, 5}, {0, 2, 0, 0, 7, 1}, {0, 3, 1, 1, 7, 1}, {0, 2, 4, 1, 4, 0, 0}, {0, 7, 2, 0, 7, 3}, {0, 4, 0, 1, 7, 3}, {0, 5, 0, 3, 7, 3, 2, 1, 0, 6, 3, 4, 2, 3}},
	"jeandle": {{4, 0, 0, 2, 5, 2, 5}, {1, 0, 0, 2, 7, 0}, {1, 0, 1, 0, 7, 5}, {1, 0, 3, 4, 7, 3, 7, 3}, {1, 1, 4, 4, 6, 0, 16, 0, 0, 0, 0, 0, 0, 2, 0}, {1, 1, 8, 4, 2, 1}, {1, 0, 6, 9, 6, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 2, 5, 2, 5}, {1, 2, 0, 3, 7, 1}},
	"jllvm":   {{4, 1, 5, 4, 1, 1}, {7, 0}, {4, 0, 1}, {7, 3}, {7, 3}, {7, 3}, {7, 3}},
	"wanco":   {{2, 1}, {2, 2, 7, 3}, {2, 0, 7, 0}, {2, 3, 7, 2}},
	"ark":     {{3, 255, 2, 0}, {3, 255, 2, 1}, {3, 254, 2, 7}, {3, 0, 7, 3}, {3, 251, 7, 3}, {3, 252, 2, 4}, {3, 1, 7, 3}},
}

// TestLayoutsOnRandomStreams runs a fixed part of FuzzLayouts, which includes shapes of each layout, and errors.
func TestLayoutsOnRandomStreams(t *testing.T) {
	for _, name := range Builtin() {
		require.Contains(t, tokens, name)
		l := builtinLayout(t, name)
		r := rand.New(rand.NewPCG(3, 4))
		shapes, errors := 0, 0
		for range 3000 {
			data := []byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), 0}
			parts := tokens[name]
			data = append(data, parts[0]...)
			for range r.IntN(7) {
				data = append(data, parts[r.IntN(len(parts))]...)
			}
			if r.IntN(2) == 0 {
				data[4+r.IntN(len(data)-4)] = byte(r.Uint32())
			}
			switch shape, err := held(t, l, stream(data)); {
			case err != nil:
				errors++
			case shape != nil:
				shapes++
			}
		}
		require.Greater(t, shapes, 100, name)
		require.Greater(t, errors, 100, name)
	}
}
