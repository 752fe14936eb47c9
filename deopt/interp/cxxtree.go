package interp

import "reframe/deopt/machine"

// The red-black trees of std::map and std::set, whose functions libstdc++ has compiled (its bits/stl_tree.h declares
// them). A node begins with
//
//	0     color   i32  0 is red
//	1*p   parent  ptr
//	2*p   left    ptr
//	3*p   right   ptr
//
// where p is the size of a pointer. The header of a tree is a red node whose parent is the root, whose left is the
// first node and whose right is the last one, itself each in an empty tree; it is the root's parent. Which of the valid
// trees comes of an operation is that of Cormen et al., Introduction to Algorithms, chapter 13.
var treeFuncs = map[string]Builtin{
	"_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base":  scalar(func(c *ccall) uint64 { return uint64(c.nextNode(c.addr(0), treeRight)) }),
	"_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base": scalar(func(c *ccall) uint64 { return uint64(c.nextNode(c.addr(0), treeRight)) }),
	"_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base":  scalar(func(c *ccall) uint64 { return uint64(c.previousNode(c.addr(0))) }),
	"_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base": scalar(func(c *ccall) uint64 { return uint64(c.previousNode(c.addr(0))) }),
	"_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_": procedure(func(c *ccall) {
		c.insertNode(c.uint(0)&1 != 0, c.addr(1), c.addr(2), c.addr(3))
	}),
	"_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_": scalar(func(c *ccall) uint64 {
		return uint64(c.eraseNode(c.addr(0), c.addr(1)))
	}),
	"_ZSt20_Rb_tree_black_countPKSt18_Rb_tree_node_baseS1_": scalar(func(c *ccall) uint64 { return c.blackCount(c.addr(0), c.addr(1)) }),
}

// The pointers of a node by their places.
const (
	treeParent = 1
	treeLeft   = 2
	treeRight  = 3
)

const (
	treeRed   = 0
	treeBlack = 1
)

// link reads a pointer of a node.
func (c *ccall) link(node machine.Addr, which int) machine.Addr {
	// A step of its own: a damaged tree may lead around for ever.
	if c.err == nil {
		c.err = c.in.work(64)
	}
	size := c.longSize()
	return machine.Addr(c.get(node+machine.Addr(which*size), size))
}

func (c *ccall) setLink(node machine.Addr, which int, to machine.Addr) {
	size := c.longSize()
	c.put(node+machine.Addr(which*size), size, uint64(to))
}

func (c *ccall) color(node machine.Addr) uint64 { return c.get(node, 4) }

// black reports whether a node is black. A null node is.
func (c *ccall) black(node machine.Addr) bool { return node == 0 || c.color(node) != treeRed }

// other is the opposite of left or right.
func other(side int) int { return treeLeft + treeRight - side }

// outermost goes down on one side as far as there are nodes.
func (c *ccall) outermost(node machine.Addr, side int) machine.Addr {
	for c.err == nil {
		next := c.link(node, side)
		if next == 0 {
			break
		}
		node = next
	}
	return node
}

// nextNode returns the node after one in the order of the tree, or with treeLeft the node before it. At the end it returns the header.
func (c *ccall) nextNode(node machine.Addr, side int) machine.Addr {
	if down := c.link(node, side); down != 0 {
		return c.outermost(down, other(side))
	}
	up := c.link(node, treeParent)
	for c.err == nil && node == c.link(up, side) {
		node, up = up, c.link(up, treeParent)
	}
	// In a tree of the root alone the climb has gone past the header.
	if side == treeRight && c.link(node, treeRight) == up {
		return node
	}
	return up
}

// previousNode returns the node before one. Before the header it returns the last node.
func (c *ccall) previousNode(node machine.Addr) machine.Addr {
	if c.color(node) == treeRed && c.link(c.link(node, treeParent), treeParent) == node {
		return c.link(node, treeRight)
	}
	return c.nextNode(node, treeLeft)
}

// replace makes the parent of a node, or the header, point to another one.
func (c *ccall) replace(node, by, header machine.Addr) {
	up := c.link(node, treeParent)
	switch {
	case c.link(header, treeParent) == node:
		c.setLink(header, treeParent, by)
	case c.link(up, treeLeft) == node:
		c.setLink(up, treeLeft, by)
	default:
		c.setLink(up, treeRight, by)
	}
}

// rotate moves a node down to a side; its child of the other side takes its place.
func (c *ccall) rotate(node machine.Addr, side int, header machine.Addr) {
	child := c.link(node, other(side))
	inner := c.link(child, side)
	c.setLink(node, other(side), inner)
	if inner != 0 {
		c.setLink(inner, treeParent, node)
	}
	c.setLink(child, treeParent, c.link(node, treeParent))
	c.replace(node, child, header)
	c.setLink(child, side, node)
	c.setLink(node, treeParent, child)
}

// insertNode puts a new node below parent, to its left or right.
func (c *ccall) insertNode(left bool, node, parent, header machine.Addr) {
	c.setLink(node, treeParent, parent)
	c.setLink(node, treeLeft, 0)
	c.setLink(node, treeRight, 0)
	c.put(node, 4, treeRed)
	if left {
		c.setLink(parent, treeLeft, node) // of the header, the first one
		if parent == header {
			c.setLink(header, treeParent, node)
			c.setLink(header, treeRight, node)
		} else if parent == c.link(header, treeLeft) {
			c.setLink(header, treeLeft, node)
		}
	} else {
		c.setLink(parent, treeRight, node)
		if parent == c.link(header, treeRight) {
			c.setLink(header, treeRight, node)
		}
	}
	for c.err == nil && node != c.link(header, treeParent) {
		up := c.link(node, treeParent)
		if c.color(up) != treeRed {
			break
		}
		top := c.link(up, treeParent)
		side := treeRight
		if c.link(top, treeLeft) == up {
			side = treeLeft
		}
		if uncle := c.link(top, other(side)); uncle != 0 && c.color(uncle) == treeRed {
			c.put(up, 4, treeBlack)
			c.put(uncle, 4, treeBlack)
			c.put(top, 4, treeRed)
			node = top
			continue
		}
		if c.link(up, other(side)) == node {
			node = up
			c.rotate(node, side, header)
			up = c.link(node, treeParent)
		}
		c.put(up, 4, treeBlack)
		c.put(top, 4, treeRed)
		c.rotate(top, other(side), header)
	}
	c.put(c.link(header, treeParent), 4, treeBlack)
}

// eraseNode takes a node out of the tree. A node with two children gives its place and color to the next one.
func (c *ccall) eraseNode(node, header machine.Addr) machine.Addr {
	left, right := c.link(node, treeLeft), c.link(node, treeRight)
	gone := c.color(node) // the color of which there is one less
	var child, up machine.Addr
	switch {
	case left != 0 && right != 0:
		next := c.outermost(right, treeLeft)
		child = c.link(next, treeRight)
		c.setLink(left, treeParent, next)
		c.setLink(next, treeLeft, left)
		up = next
		if next != right {
			up = c.link(next, treeParent)
			if child != 0 {
				c.setLink(child, treeParent, up)
			}
			c.setLink(up, treeLeft, child)
			c.setLink(next, treeRight, right)
			c.setLink(right, treeParent, next)
		}
		c.replace(node, next, header)
		c.setLink(next, treeParent, c.link(node, treeParent))
		was := c.color(next)
		c.put(next, 4, gone)
		c.put(node, 4, was)
		gone = was
	default:
		child, up = left+right, c.link(node, treeParent) // one of them is null
		if child != 0 {
			c.setLink(child, treeParent, up)
		}
		c.replace(node, child, header)
		for _, side := range []int{treeLeft, treeRight} {
			if c.link(header, side) != node {
				continue
			}
			end := up
			if child != 0 {
				end = c.outermost(child, side)
			}
			c.setLink(header, side, end)
		}
	}
	if gone != treeRed {
		c.mendErased(child, up, header)
	}
	return node
}

// mendErased restores the count of black nodes where below up there is one too few on the way to node, which may be null.
func (c *ccall) mendErased(node, up, header machine.Addr) {
	for c.err == nil && node != c.link(header, treeParent) && c.black(node) {
		side := treeRight
		if c.link(up, treeLeft) == node {
			side = treeLeft
		}
		sibling := c.link(up, other(side))
		if c.color(sibling) == treeRed {
			c.put(sibling, 4, treeBlack)
			c.put(up, 4, treeRed)
			c.rotate(up, side, header)
			sibling = c.link(up, other(side))
		}
		near, far := c.link(sibling, side), c.link(sibling, other(side))
		if c.black(near) && c.black(far) {
			c.put(sibling, 4, treeRed)
			node, up = up, c.link(up, treeParent)
			continue
		}
		if c.black(far) {
			c.put(near, 4, treeBlack)
			c.put(sibling, 4, treeRed)
			c.rotate(sibling, other(side), header)
			sibling = c.link(up, other(side))
			far = c.link(sibling, other(side))
		}
		c.put(sibling, 4, c.color(up))
		c.put(up, 4, treeBlack)
		if far != 0 {
			c.put(far, 4, treeBlack)
		}
		c.rotate(up, side, header)
		break
	}
	if node != 0 {
		c.put(node, 4, treeBlack)
	}
}

// blackCount counts the black nodes from one up to the root.
func (c *ccall) blackCount(node, root machine.Addr) (n uint64) {
	for c.err == nil && node != 0 {
		if c.color(node) == treeBlack {
			n++
		}
		if node == root {
			break
		}
		node = c.link(node, treeParent)
	}
	return n
}
