# pragma version ^0.4.0

number: public(uint256)

@external
def set_number(number: uint256):
    self.number = number

@external
def increment():
    self.number += 1
