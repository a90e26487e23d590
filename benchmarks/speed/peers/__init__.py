"""Others, each as its own documentation would have it used, each in an environment of its own."""
