"""What Maggy kept in `maggy.core`, as far as scripts import it."""
