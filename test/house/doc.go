// Package house checks the repository: the directions of imports between its areas, and that documents name what exists.
package house
