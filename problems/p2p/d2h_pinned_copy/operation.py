"""Some columns of a matrix of bytes on the device, without gaps in pinned host memory. One device, no NCCL."""
import torch


def operation(matrix: torch.Tensor, left: int, out: torch.Tensor) -> None:
    """matrix: [rows, left + width + right] on the device; out: [rows, width] on the host, pinned; uint8."""
    out.copy_(matrix[:, left : left + out.shape[1]], non_blocking=True)
    torch.cuda.synchronize()


def main() -> None:
    for width in (1021, 4093):
        matrix = torch.randint(0, 256, (64, 5 + width + 2), dtype=torch.uint8, device="cuda")
        operation(matrix, 5, torch.empty(64, width, dtype=torch.uint8, pin_memory=True))


if __name__ == "__main__":
    main()
