"""3 x 3 x 3 convolution of a volume whose channels are spread over ranks; every rank gets the sum."""
import torch
import torch.distributed as dist
import torch.nn.functional as F


def operation(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    volume = x.permute(3, 0, 1, 2).unsqueeze(0)
    y = F.conv3d(volume, w.permute(4, 3, 0, 1, 2), padding=1).squeeze(0).permute(1, 2, 3, 0).contiguous()
    dist.all_reduce(y)
    return y


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows in (4, 8):
        x = torch.randn(2, rows, 8, 4, device="cuda")
        operation(x, torch.randn(3, 3, 3, 4, 8, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
