package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// series holds the results of one tool's runs: durations, or bytes.
type series[T cmp.Ordered] []T

func (s *series[T]) add(v T) { *s = append(*s, v) }

// times is a series of durations.
type times = series[time.Duration]

// median returns the middle value. For an even number of values it returns the upper middle one, so that the median is a measured value.
func (s series[T]) median() T {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// spread formats a series as "median (smallest to largest)".
func spread(s times) string {
	if len(s) == 1 {
		return duration(s[0])
	}
	return fmt.Sprintf("%s (%s to %s)", duration(s.median()), duration(slices.Min(s)), duration(slices.Max(s)))
}

// duration formats d in milliseconds, or in seconds from one second on, with three significant digits.
func duration(d time.Duration) string {
	v, unit := float64(d)/float64(time.Millisecond), "ms"
	if d >= time.Second {
		v, unit = d.Seconds(), "s"
	}
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f %s", v, unit)
	case v < 100:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// ratio formats ours divided by theirs with two significant digits.
func ratio[T ~int64](ours, theirs T) string {
	r := float64(ours) / float64(theirs)
	switch {
	case r >= 10:
		return fmt.Sprintf("%.0f", r)
	case r >= 1:
		return fmt.Sprintf("%.1f", r)
	case r >= 0.1:
		return fmt.Sprintf("%.2f", r)
	}
	return fmt.Sprintf("%.2g", r)
}
