// Package house lists the areas of the repository, and checks it: the directions of imports between areas, and that documents name what exists.
package house
