// Package roots tests the verb roots against a collector of its own, which prints each pair that it updates.
package roots
