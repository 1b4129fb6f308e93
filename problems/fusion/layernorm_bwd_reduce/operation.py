"""Gradients of a layer norm's weight and bias, summed over the rows of all ranks."""
import torch
import torch.distributed as dist


def operation(
    dy: torch.Tensor, xhat: torch.Tensor, dweight: torch.Tensor, dbias: torch.Tensor
) -> None:
    """dy, xhat: [rows, hidden], dweight, dbias: [hidden]."""
    sums = torch.stack([(dy * xhat).sum(dim=0), dy.sum(dim=0)])
    dist.all_reduce(sums, op=dist.ReduceOp.SUM)
    dweight.copy_(sums[0])
    dbias.copy_(sums[1])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for hidden in (128, 384):
        dy, xhat = torch.randn(2, 64, hidden, device="cuda")
        dweight, dbias = torch.empty(2, hidden, device="cuda")
        operation(dy, xhat, dweight, dbias)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
