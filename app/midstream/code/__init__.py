"""Pure code intelligence: languages, lexing, syntax trees and outlines of source text."""
