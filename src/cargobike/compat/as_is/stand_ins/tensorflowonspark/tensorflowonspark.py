"""Stands where the library `tensorflowonspark` would be, for programs that run as they are."""

from cargobike.compat.as_is.standing import stand_in

stand_in(__name__)
