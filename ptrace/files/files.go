// Package files opens and reads the files that targets name: only regular ones, below the root of another machine if one is given. It caches blocks
// of them.
//
// Its main function is [OpenRegular]. [Sysroot] is another machine's root, and [Cache] caches blocks of a file.
//
// # Security
//
// The names come from targets, which are hostile: a name may lead to a device, to a pipe without a writer, or through links to any path. The package
// opens none of these. The readers of the files check the contents.
package files
